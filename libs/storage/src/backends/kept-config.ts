/** What of a configuration stays while something depends on it. */
import { counted } from '#platform/counted';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import type { BackendKinds } from '#storage/backends/backend-kinds';
import type { BackendHolds } from '#storage/backends/backend-view';
import { asTenant } from '#storage/backends/shares';

const POOLS_IN_USE = sql(
  'backend_pools_in_use',
  `SELECT pool FROM trivet.volume WHERE tenant_id = $1 AND backend_id = $2 AND state <> 'gone'
   UNION SELECT pool FROM trivet.snapshot
    WHERE tenant_id = $1 AND backend_id = $2 AND (state <> 'gone' OR cut IS NOT NULL AND image_gone_at IS NULL)`,
);
/** With those that are being granted, and those of which the store still has to forget who came in. */
const KEYLESS_ACCESSES = sql(
  'backend_keyless_accesses',
  `SELECT count(*)::int AS n FROM trivet.access
    WHERE tenant_id = $1 AND backend_id = $2 AND state <> 'gone' AND desired ? 'serviceAccount'`,
);

interface Kept {
  kind: string;
  config: Record<string, unknown>;
  holds: BackendHolds;
}

interface Place {
  tenantId: string;
  backendId: string;
}

/**
 * `failed_precondition` when another configuration would lose what is there.
 * @param places itself first, and then its shares: locked, so that nothing comes to them meanwhile
 */
export async function requireKept(
  tx: Tx,
  kinds: BackendKinds,
  { kind, config: had, holds }: Kept,
  wanted: unknown,
  places: readonly [Place, ...Place[]],
): Promise<void> {
  const config = wanted as Record<string, unknown>;
  const { fixed, keyless = [] } = kinds.require(kind);
  const changed = (key: string) => JSON.stringify(config[key]) !== JSON.stringify(had[key]);
  const atAll = async <Row>(ask: (place: Place) => Promise<Row[]>): Promise<Row[]> => {
    const rows: Row[] = [];
    for (const place of places)
      rows.push(...(await asTenant(tx, place.tenantId, () => ask(place), places[0].tenantId)));
    return rows;
  };

  const held = holds.volumes + holds.snapshots + holds.buckets + holds.accesses + holds.operations > 0;
  const moved = fixed.find(changed);
  if (held && moved !== undefined) throw notFixed(moved);

  // Of what it never had nobody is let in; a backend that lost it gets it back.
  const trusted = keyless.find(key => changed(key) && had[key] !== undefined);
  if (trusted !== undefined) {
    const counts = await atAll(({ tenantId, backendId }) =>
      tx.query<{ n: number }>(KEYLESS_ACCESSES, [tenantId, backendId]),
    );
    const live = counts.reduce((sum, { n }) => sum + n, 0);
    if (live > 0) throw stillTrusting(trusted, live);
  }

  const pools = kinds.poolsOf(kind, config);
  if (!pools) return;
  const used = await atAll(({ tenantId, backendId }) =>
    tx.query<{ pool: string }>(POOLS_IN_USE, [tenantId, backendId]),
  );
  const lost = used.find(({ pool }) => !pools.includes(pool));
  if (lost)
    throw new StorageError('failed_precondition', `pool ${lost.pool} holds volumes or snapshots: delete them first`, {
      field: 'config',
    });
}

const notFixed = (key: string): StorageError =>
  new StorageError(
    'failed_precondition',
    `config.${key} says where things are, and this backend holds some: it stays until nothing is left there`,
    { field: `config/${key}` },
  );

const stillTrusting = (key: string, live: number): StorageError =>
  new StorageError(
    'failed_precondition',
    `config.${key} says whose service accounts are let in, and ${counted(live, 'access', 'accesses')} without a key would go on letting in those of before: revoke ${live === 1 ? 'it' : 'them'} first (\`trivet access list --authentication service_account\`), or register another backend`,
    { field: `config/${key}` },
  );
