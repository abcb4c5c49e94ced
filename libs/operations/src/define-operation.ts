import type { NewOperation, Slot } from '#operations/accept';
import type { Handler } from '#operations/handler';
import type { JsonObject, LeasedOperation, QueueClass } from '#operations/operation';

/**
 * A kind of operation, said once: what it is called, what it needs for itself, what it stops. Whoever asks for one names
 * the definition, and so does the worker's half that carries it out: a kind that is misspelt, a field of a request that is
 * missing, and a negation of what does not exist do not compile.
 */
export interface OperationTraits<Request extends object> {
  /** What `resourceId` is the id of. */
  readonly resourceKind: string;
  /** Its queue, unless the asker says another one: a copy of data goes behind other copies. */
  readonly class: QueueClass;
  slots(resourceId: string, request: Request): readonly Slot[];
  /** Kinds on the same resource that it asks to stop and then undoes; it goes before everything else there. */
  negates?(request: Request): readonly AnyOperation[];
}

export interface Asked<Request extends object> {
  resourceId: string;
  /** For people. */
  resourceName: string;
  request: Request;
  class?: QueueClass;
  /** Beside those of the kind, where the state of others asks for it. */
  moreSlots?: readonly Slot[];
}

/** Who asks, and from where: what is no business of the kind. */
export type Origin = Pick<
  NewOperation,
  'id' | 'tenantId' | 'backendId' | 'unattended' | 'traceparent' | 'actor' | 'audit'
>;

export type AnyOperation = Pick<OperationDefinition<never>, 'kind'>;

export class OperationDefinition<Request extends object> {
  constructor(
    readonly kind: string,
    private readonly traits: OperationTraits<Request>,
  ) {}

  /** For `accept`. */
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

  /** What was asked for; also of rows that earlier releases wrote, so that fields which came later are optional. */
  requestOf({ kind, request }: LeasedOperation): Request {
    if (kind !== this.kind) throw new Error(`the request of ${kind} is not that of ${this.kind}`);
    return request as Request;
  }

  /** The worker's half. */
  handledBy<Work>(how: Omit<Handler<Work>, 'kind'>): Handler {
    return { ...how, kind: this.kind } as Handler;
  }
}

export const defineOperation = <Request extends object = Record<never, never>>(
  kind: string,
  traits: OperationTraits<Request>,
): OperationDefinition<Request> => new OperationDefinition(kind, traits);
