import type { NewOperation, Slot } from '#operations/accepting/accept';
import type { QueueClass } from '#operations/operation';

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

/** As much of a definition as who asks for it needs. */
export interface Askable<Request extends object> {
  readonly kind: string;
  /** For `accept`. */
  asked(asked: Asked<Request>, origin: Origin): NewOperation;
}
