import type { NewOperation, Slot } from '#operations/accepting/accept';
import type { Askable, Asked, Origin } from '#operations/accepting/askable';
import type { Handler, Handling } from '#operations/definitions/handler';
import type { JsonObject, QueueClass } from '#operations/operation';

/**
 * A kind of operation, said once, in the file that is named after it: what it is called, what it needs for itself, what it
 * stops, and how a worker carries it out. Whoever asks for one names this value: a kind that is misspelt, a field of a
 * request that is missing, and a negation of what does not exist do not compile.
 */
export interface OperationTraits<Request extends object, Work, Needs> {
  /** What `resourceId` is the id of. */
  readonly resourceKind: string;
  /** Its queue, unless the asker says another one: a copy of data goes behind other copies. */
  readonly class: QueueClass;
  slots(resourceId: string, request: Request): readonly Slot[];
  /** Kinds on the same resource that it asks to stop and then undoes; it goes before everything else there. */
  negates?(request: Request): readonly Pick<AnyOperation, 'kind'>[];
  /** Asks no backend by itself: a gateway makes it, too, for what it says of its steps and of giving up. */
  carriedOut(needs: Needs): Handling<Work, Request>;
}

export class OperationDefinition<Request extends object, Work, Needs> implements Askable<Request> {
  constructor(
    readonly kind: string,
    private readonly traits: OperationTraits<Request, Work, Needs>,
  ) {}

  asked(
    { resourceId, resourceName, request, class: queue, moreSlots = [] }: Asked<Request>,
    origin: Origin,
  ): NewOperation {
    const { resourceKind, class: usual, slots, negates } = this.traits;
    return {
      ...origin,
      kind: this.kind,
      class: queue ?? usual,
      resourceKind,
      resourceId,
      resourceName,
      request: request as JsonObject,
      slots: [...slots(resourceId, request), ...moreSlots],
      negates: negates?.(request).map(({ kind }) => kind),
    };
  }

  /** The worker's half. The runner keeps `Work` and `Request` of one kind together without knowing them. */
  handler(needs: Needs): Handler {
    return { ...(this.traits.carriedOut(needs) as unknown as Handling), kind: this.kind };
  }
}

/** Of a kind that nothing more is known of. */
export interface AnyOperation<Needs = never> {
  readonly kind: string;
  handler(needs: Needs): Handler;
}

export const defineOperation = <Request extends object, Work, Needs>(
  kind: string,
  traits: OperationTraits<Request, Work, Needs>,
): OperationDefinition<Request, Work, Needs> => new OperationDefinition(kind, traits);

type NeedsOf<Definitions extends readonly AnyOperation[]> = Parameters<Definitions[number]['handler']>[0];
type All<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer Intersection) => void
  ? Intersection
  : never;

/** The worker's half of several kinds, over what any of them needs. */
export const handlersOf = <const Definitions extends readonly AnyOperation[]>(
  definitions: Definitions,
  needs: All<NeedsOf<Definitions>>,
): Handler[] => definitions.map(definition => definition.handler(needs as never));
