import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { SecretBox } from '#platform/crypto/secrets';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { createLogger } from '#platform/logging/log';
import { readAccess } from '#storage/object/accesses/access-at-backend';
import { NO_KEY } from '#storage/object/accesses/access-work';
import type { BackendDirectory } from '#storage/shared/backend-directory';
import { answers, besides, type StoreVisit, StoreVisits, storeOf } from '#storage/shared/store-visits';

const log = createLogger('audit');

/** At most so many of each a round: the audit must not be felt. */
const PORTION = 20;
const PROBE_MS = 5_000;

const TENANTS = sql('audit_tenants', 'SELECT tenant_id AS "tenantId" FROM trivet.list_tenants()');
const CLAIM_BUCKETS = sql(
  'audit_claim_buckets',
  `UPDATE trivet.bucket b SET audited_at = now()
     FROM (SELECT id FROM trivet.bucket
            WHERE tenant_id = $1 AND state = 'ready' AND active_operation IS NULL
              AND audited_at < now() - $2 * interval '1 ms' AND ${answers('bucket.backend_id')} AND ${besides('bucket.backend_id', '$4')}
            ORDER BY audited_at LIMIT $3 FOR UPDATE SKIP LOCKED) due
    WHERE b.tenant_id = $1 AND b.id = due.id
   RETURNING b.id, b.name, b.origin, b.identity, b.backend_id AS "backendId", b.condition IS NOT NULL AS "hadCondition",
     ${storeOf('b')}`,
);
const SET_CONDITION = sql(
  'audit_set_condition',
  `UPDATE trivet.bucket SET condition = $3, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND state = 'ready' AND active_operation IS NULL`,
);
/** One that was registered before identities were kept is the one that has its name now. */
const SET_IDENTITY = sql(
  'audit_set_identity',
  'UPDATE trivet.bucket SET identity = $3 WHERE tenant_id = $1 AND id = $2 AND identity IS NULL',
);
const CLAIM_ACCESSES = sql(
  'audit_claim_accesses',
  `UPDATE trivet.access a SET audited_at = now()
     FROM (SELECT id FROM trivet.access
            WHERE tenant_id = $1 AND state = 'ready' AND active_operation IS NULL AND key_operation IS NULL AND NOT stale
              AND audited_at < now() - $2 * interval '1 ms' AND ${answers('access.backend_id')} AND ${besides('access.backend_id', '$4')}
            ORDER BY audited_at LIMIT $3 FOR UPDATE SKIP LOCKED) due
    WHERE a.tenant_id = $1 AND a.id = due.id
   RETURNING a.id, a.name, a.backend_id AS "backendId", a.updated_at::text AS version, ${storeOf('a')},
     (SELECT array_agg(g.bucket_id) FROM trivet.bucket_grant g WHERE g.tenant_id = $1 AND g.access_id = a.id) AS buckets`,
);
/** Unless its keys were changed while the store was asked. */
const SET_STALE = sql(
  'audit_set_stale',
  `UPDATE trivet.access SET stale = true, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND state = 'ready' AND active_operation IS NULL AND key_operation IS NULL
      AND updated_at::text = $3`,
);

const giveBack = (table: 'bucket' | 'access') =>
  sql(
    `audit_give_back_${table}`,
    `UPDATE trivet.${table} SET audited_at = now() - $3 * interval '1 ms' WHERE tenant_id = $1 AND id = ANY ($2)`,
  );
const GIVE_BACK = { bucket: giveBack('bucket'), access: giveBack('access') };

interface DueVisit extends StoreVisit {
  tenantId: string;
  table: 'bucket' | 'access';
  id: string;
}

interface DueBucket {
  id: string;
  name: string;
  origin: 'created' | 'registered';
  identity: string | null;
  backendId: string;
  store: string;
  hadCondition: boolean;
}

interface DueAccess {
  id: string;
  name: string;
  backendId: string;
  store: string;
  version: string;
  buckets: string[] | null;
}

/**
 * Looks from time to time whether the backend still has what the fast path vouches for (invariant E3). It changes
 * nothing there. A bucket that is gone held data: whoever asks for it must learn that. An access is configuration: it is
 * marked, and the next Grant puts it right.
 */
export class ObjectDriftCheck implements PeriodicTask {
  readonly name = 'object-drift';
  readonly everyMs = 0;
  /** A store that is slow takes its time. */
  readonly boundMs = 900_000;
  readonly scope = 'worker';
  /** What is due has waited for an hour. */
  readonly calm = 15;

  constructor(
    private readonly database: Database,
    private readonly backends: BackendDirectory,
    private readonly secrets: SecretBox,
    private readonly auditMs: number,
  ) {}

  private readonly visits = new StoreVisits(log, 'cannot look whether a store has what it should');

  /** `signal` ends it between two probes, and the one that runs. */
  async run(signal: AbortSignal): Promise<'calm' | undefined> {
    const visits: DueVisit[] = [];
    for (const { tenantId } of await this.database.engine<{ tenantId: string }>(TENANTS)) {
      const due = [tenantId, this.auditMs, PORTION, this.visits.silent];
      const { buckets, accesses } = await this.database.withTenant(tenantId, async tx => ({
        buckets: await tx.query<DueBucket>(CLAIM_BUCKETS, due),
        accesses: await tx.query<DueAccess>(CLAIM_ACCESSES, due),
      }));
      for (const bucket of buckets)
        visits.push({
          tenantId,
          table: 'bucket',
          id: bucket.id,
          store: bucket.store,
          ask: () => this.bucket(tenantId, bucket, signal),
        });
      for (const access of accesses)
        visits.push({
          tenantId,
          table: 'access',
          id: access.id,
          store: access.store,
          ask: () => this.access(tenantId, access, signal),
        });
    }
    await this.giveBack(await this.visits.make(visits, signal));
    return visits.length === 0 ? 'calm' : undefined;
  }

  /** What was claimed and not asked is due again. */
  private async giveBack(left: readonly DueVisit[]): Promise<void> {
    for (const [key, visits] of Map.groupBy(left, ({ tenantId, table }) => `${tenantId}/${table}` as const)) {
      const [tenantId = '', table] = key.split('/') as [string, DueVisit['table']];
      const ids = visits.map(({ id }) => id);
      await this.database.withTenant(tenantId, tx => tx.query(GIVE_BACK[table], [tenantId, ids, this.auditMs]));
    }
  }

  private async bucket(tenantId: string, bucket: DueBucket, signal: AbortSignal): Promise<void> {
    const backend = await this.backends.open(tenantId, bucket.backendId);
    const found = await backend.inspectBucket(bucket.name, bounded(signal));
    const there =
      bucket.origin === 'registered'
        ? 'identity' in found && (bucket.identity ?? found.identity) === found.identity
        : found.state === 'ours' && found.incarnation === bucket.id;
    if (
      bucket.origin === 'registered' &&
      bucket.identity === null &&
      'identity' in found &&
      found.identity !== undefined
    ) {
      const { identity } = found;
      await this.database.withTenant(tenantId, tx => tx.query(SET_IDENTITY, [tenantId, bucket.id, identity]));
    }
    if (there && !bucket.hadCondition) return;
    const message =
      found.state === 'absent'
        ? 'the backend no longer has this bucket; delete it here to free its name'
        : 'the backend has another bucket of this name; delete it here to let go of the name';
    const condition = there ? null : { type: 'BackendLost', message };
    if (condition) log.error({ bucket: bucket.name, ...condition }, 'a bucket that was ready is not there any more');
    await this.database.withTenant(tenantId, tx =>
      tx.query(SET_CONDITION, [tenantId, bucket.id, condition && JSON.stringify(condition)]),
    );
  }

  private async access(tenantId: string, due: DueAccess, signal: AbortSignal): Promise<void> {
    const { id, name, backendId, version, buckets } = due;
    const backend = await this.backends.open(tenantId, backendId);
    const wanted = await this.database.withTenant(tenantId, tx =>
      readAccess(tx, this.secrets, tenantId, id, buckets ?? []),
    );
    const { uid, former, policies } = wanted;
    const { serviceAccount: trusts } = wanted.desired;
    const credentials = wanted.credentials ?? (trusts && NO_KEY);
    if (!credentials) return;
    const principal = { uid, displayName: wanted.name, ...credentials, beside: [former ?? []].flat(), trusts };
    const holds = [() => backend.holdsPrincipal(principal, bounded(signal))];
    for (const { name: bucket, incarnation, identity, grants } of policies)
      holds.push(() => backend.holdsGrants({ name: bucket, incarnation, identity }, grants, bounded(signal), [uid]));
    for (const check of holds) {
      if (await check()) continue;
      log.warn({ access: name }, 'the backend does not hold this access as granted; its next Grant puts it right');
      await this.database.withTenant(tenantId, tx => tx.query(SET_STALE, [tenantId, id, version]));
      return;
    }
  }
}

const bounded = (signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(PROBE_MS)]);
