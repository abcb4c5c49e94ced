import { counted } from '#platform/counted';
import type { Actor } from '#tenancy/audit-log/audit-log';

/** What is done to many: each in its own operation, or by the one statement that a person asks for it with. `role`: what that takes. */
export const BULK_ACTIONS = {
  'delete-volumes': { role: 'admin', of: 'volume', what: ['deletion of', 'volume'] },
  'purge-volumes': { role: 'admin', of: 'volume', what: ['removal from the recycle bin of', 'volume'] },
  'delete-snapshots': { role: 'admin', of: 'snapshot', what: ['deletion of', 'snapshot'] },
  'delete-buckets': { role: 'admin', of: 'bucket', what: ['deletion of', 'bucket'] },
  unpublish: { role: 'admin', of: 'publication', what: ['end of', 'publication'] },
  'retry-operations': { role: 'operator', of: 'operation', what: ['retry of', 'operation'] },
  'cancel-operations': { role: 'operator', of: 'operation', what: ['cancellation of', 'operation'] },
} as const;
export type BulkAction = keyof typeof BULK_ACTIONS;
export type BulkSubject = (typeof BULK_ACTIONS)[BulkAction]['of'];

export const isOfOperations = (action: BulkAction): boolean => BULK_ACTIONS[action].of === 'operation';

export const OF_OPERATIONS = (Object.keys(BULK_ACTIONS) as BulkAction[]).filter(isOfOperations);

/** For people: what the bulk is about. */
export function titleOf(action: BulkAction, count: number): string {
  const [what, noun] = BULK_ACTIONS[action].what;
  return `${what} ${counted(count, noun)}`;
}

/** How somebody came in. */
export interface BulkLogin {
  /** Of the user. */
  tenantId: string;
  userId: string;
  /** Of an API token; a login at the page may have ended long before. */
  tokenId?: string;
}

export interface BulkRequest {
  action: BulkAction;
  count: number;
  /** As the API took it; absent: ids were given. */
  filter?: object;
  reason?: string;
  /** Who asked for it; shown by the audit log alone. */
  by: Actor & { shown: string; login: BulkLogin };
}

/** An operation of several backends is of none: its circuit is never open, and it has a line of its own. */
export const NO_BACKEND = '00000000-0000-0000-0000-000000000000';
