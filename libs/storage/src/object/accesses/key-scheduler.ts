import { acceptInBackground } from '#operations/accepting/accept-in-background';
import type { Begin } from '#operations/accepting/operations';
import { type PeriodicTask, WOKEN } from '#operations/periodic/periodic-task';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { lockAccount } from '#storage/object/accesses/access-store';
import { beginRetirement, beginRotation, postponeRotation, readKeys } from '#storage/object/accesses/key-changes';

const log = createLogger('accesses');

/** Of one tenant in a round: others come in between, and the rest is due in the next one. */
const PORTION = 50;

const TENANTS = sql('access_keys_tenants', 'SELECT tenant_id AS "tenantId" FROM trivet.access_keys_due()');
const DUE = sql(
  'access_keys_due',
  `SELECT account_id AS "accountId", backend_id AS "backendId" FROM trivet.access
    WHERE tenant_id = $1 AND state = 'ready' AND key_operation IS NULL AND least(former_until, rotate_at) <= now()
    ORDER BY least(former_until, rotate_at) LIMIT $2`,
);

interface Due {
  accountId: string;
  backendId: string;
}

/**
 * Ends keys whose time is over, and changes those that are as old as their access class says. Any number of workers do so at
 * once: what is due stands in Postgres, by the database's clock, and whoever accepts the operation has locked the access.
 */
export class AccessKeyScheduler implements PeriodicTask {
  readonly name = 'access-keys';
  readonly everyMs = 0;
  readonly scope = 'worker';
  readonly calm = WOKEN;

  constructor(private readonly database: Database) {}

  /** `signal` ends it between two of them. */
  async run(signal: AbortSignal): Promise<'calm' | undefined> {
    const tenants = await this.database.engine<{ tenantId: string }>(TENANTS);
    for (const { tenantId } of tenants) {
      const due = await this.database.withTenant(tenantId, tx => tx.query<Due>(DUE, [tenantId, PORTION]));
      for (const { accountId, backendId } of due) {
        if (signal.aborted) return undefined;
        await acceptInBackground(this.database, { tenantId, backendId }, (tx, begin, operationId) =>
          change(tx, begin, { tenantId, backendId, operationId }, accountId),
        ).catch(error => {
          if (!isStorageError(error)) throw error;
          log.warn({ accountId, err: error.toJSON() }, 'the keys of an access must wait');
        });
      }
    }
    return tenants.length === 0 ? 'calm' : undefined;
  }
}

async function change(
  tx: Tx,
  begin: Begin,
  place: { tenantId: string; backendId: string; operationId: string },
  accountId: string,
): Promise<void> {
  const row = await lockAccount(tx, place, accountId);
  if (row?.state !== 'ready') return;
  const keys = await readKeys(tx, place.tenantId, row.id);
  if (keys.operation !== null) return;
  // Before its key is changed again, the one before it goes: the store has room for two.
  if (keys.formerEnds || (keys.rotates && keys.formerUntil !== null)) await beginRetirement(tx, begin, place, row);
  else if (keys.rotates && keys.ended) await postponeRotation(tx, place, row);
  else if (keys.rotates) await beginRotation(tx, begin, place, row, row.desired.rotation?.graceSeconds ?? 0);
}
