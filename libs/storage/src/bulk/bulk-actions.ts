import { counted } from '#platform/counted';
import type { Actor } from '#tenancy/audit-log/audit-log';

/** What is done to many: each in its own operation, or by the one statement that a person asks for it with. */
export const BULK_ACTIONS = {
  'delete-volumes': { of: 'volume', what: ['deletion of', 'volume'] },
  'purge-volumes': { of: 'volume', what: ['removal from the recycle bin of', 'volume'] },
  'delete-snapshots': { of: 'snapshot', what: ['deletion of', 'snapshot'] },
  'delete-buckets': { of: 'bucket', what: ['deletion of', 'bucket'] },
  unpublish: { of: 'publication', what: ['end of', 'publication'] },
  'retry-operations': { of: 'operation', what: ['retry of', 'operation'] },
  'cancel-operations': { of: 'operation', what: ['cancellation of', 'operation'] },
} as const;
export type BulkAction = keyof typeof BULK_ACTIONS;
export type BulkSubject = (typeof BULK_ACTIONS)[BulkAction]['of'];

export const isOfOperations = (action: BulkAction): boolean => BULK_ACTIONS[action].of === 'operation';

/** For people: what the bulk is about. */
export function titleOf(action: BulkAction, count: number): string {
  const [what, noun] = BULK_ACTIONS[action].what;
  return `${what} ${counted(count, noun)}`;
}

export interface BulkRequest {
  action: BulkAction;
  count: number;
  /** As the API took it; absent: ids were given. */
  filter?: object;
  reason?: string;
  /** Who asked for it; where from stands in the entry of the audit log. */
  by: Omit<Actor, 'address'> & { shown: string };
}

/** An operation of several backends is of none: its circuit is never open, and it has a line of its own. */
export const NO_BACKEND = '00000000-0000-0000-0000-000000000000';
