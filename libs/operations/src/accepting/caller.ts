import type { ChangeObserver } from '#operations/accepting/change-observer';

/** Who asks, for whom, and how long they wait. Nobody writes into it: what came of the call is returned. */
export interface Caller {
  readonly tenantId: string;
  readonly backendId: string;
  /** Wait no longer than this for the operation; the work goes on. Milliseconds since the epoch. */
  readonly deadline: number;
  /** The caller left: stop waiting. The work goes on. */
  readonly signal?: AbortSignal;
  readonly traceparent?: string;
  /** Who it is, for people who look at the operation. */
  readonly actor?: string;
  readonly observer?: ChangeObserver;
}
