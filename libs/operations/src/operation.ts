import type { StoredError } from '#platform/errors';

/** Each class has its own queue, so that a bulk copy never stands before a bucket's creation. */
export const QUEUE_CLASSES = ['fast', 'copy', 'destroy', 'index'] as const;
export type QueueClass = (typeof QUEUE_CLASSES)[number];

export type OperationState = 'pending' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'needs_attention';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json | undefined };

/** The bell's whole payload: what it means stands in Postgres. */
export interface Ring {
  operationId: string;
  class: QueueClass;
  /** Of the pool; null: any worker may run it. */
  host?: string | null;
  dispatchNo: number;
}

/** An operation as its worker holds it. `fence` is a bigint in decimal. */
export interface LeasedOperation<Request extends object = object> {
  tenantId: string;
  id: string;
  kind: string;
  class: QueueClass;
  backendId: string;
  resourceKind: string;
  resourceId: string;
  resourceName: string;
  /** At which others may be waiting for its end: those of its slots. */
  resources: readonly string[];
  /** Also of rows that earlier releases wrote: fields of it which came later are optional. */
  request: Request;
  /** What earlier attempts committed. */
  progress: JsonObject;
  attempt: number;
  crashes: number;
  /** Leases that living workers lost in a row, without any progress in between. */
  losses: number;
  /** Among those of its tenant, backend and class; free again when this attempt ends. */
  place: number;
  fence: string;
  /** Grows over all claims of all operations: what adapters on one host compare (invariant E5). */
  hostFence: string;
  cancelled: boolean;
  traceparent: string | null;
  createdAt: Date;
}

/** How a wait ended. `retrying`: the last attempt failed, the operation stays queued (invariant E8). */
export type Outcome =
  | { state: 'succeeded'; result: Json }
  | { state: 'failed'; error: StoredError }
  | { state: 'retrying'; error: StoredError }
  | { state: 'needs_attention'; error: StoredError }
  | { state: 'cancelled' }
  | { state: 'unfinished' };
