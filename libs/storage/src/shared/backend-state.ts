import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';

/**
 * Of a registered backend. What is there is served in each of them: published, unpublished, granted, revoked, deleted.
 * cordoned: nothing new is made; snapshots of volumes that are there, and larger ones, are no new things, but those of
 * protection templates wait. draining: nothing is added at all.
 */
export type BackendState = 'active' | 'cordoned' | 'draining';

/** Each interface has its own code for the field `backend`: the caller's next try may succeed. */
export const notTaking = (name: string, state: BackendState): StorageError => {
  const message =
    state === 'draining'
      ? `backend ${name} is being drained: nothing new is made there`
      : `backend ${name} is cordoned: nothing new is made there`;
  return new StorageError('failed_precondition', message, { retry: 'later', field: 'backend' });
};

const STATE = sql(
  'backend_state',
  `SELECT name, effective_state AS state FROM trivet.backend WHERE tenant_id = $1 AND id = $2 FOR KEY SHARE`,
);

/** Unless something new may be made there, in this transaction. */
export async function requireTaking(tx: Tx, { tenantId, backendId }: { tenantId: string; backendId: string }) {
  const [row] = await tx.query<{ name: string; state: BackendState }>(STATE, [tenantId, backendId]);
  if (row && row.state !== 'active') throw notTaking(row.name, row.state);
}

export const shareFollows = (name: string): StorageError =>
  new StorageError(
    'failed_precondition',
    `${name} is a share: its configuration and credentials follow the backend of the appliance, so change that one`,
    { field: 'config' },
  );
