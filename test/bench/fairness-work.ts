import { randomUUID } from 'node:crypto';
import { accept } from '#operations/accepting/accept';
import type { QueueClass } from '#operations/operation';
import type { Doorbell } from '#operations/queue/doorbell';
import type { Database } from '#platform/database/database';
import { uuidv7 } from '#platform/uuid';
import type { TestDatabase } from '#test/support/database';

/** The kind of all operations of this bench. */
export const NOTHING = 'bench.nothing';
/** Operations of one tenant under way at one backend and in one class; workers' places in one class: as the product has them. */
export const CAP = 64;
export const PLACES = 128;

export interface Caller {
  tenantId: string;
  backendId: string;
}

export async function makeCallers(database: TestDatabase, count: number): Promise<Caller[]> {
  const made = Array.from({ length: count }, () => ({ tenantId: uuidv7(), backendId: uuidv7() }));
  const [tenants, backends] = [made.map(one => one.tenantId), made.map(one => one.backendId)];
  await database.query("INSERT INTO trivet.tenant (id, name) SELECT id, 'bench-' || id FROM unnest($1::uuid[]) AS id", [
    tenants,
  ]);
  await database.query(
    `INSERT INTO trivet.backend (tenant_id, id, name, kind, config)
     SELECT tenant, id, 'b', 'fake', '{}' FROM unnest($1::uuid[], $2::uuid[]) AS made (tenant, id)`,
    [tenants, backends],
  );
  return made;
}

/** Accepted, and without a place, so many of each class: they wait for a reconciler, and for each other's ends. */
export async function haveWaiting(
  database: TestDatabase,
  callers: readonly Caller[],
  classes: readonly QueueClass[],
  count: number,
): Promise<void> {
  await database.query(
    `WITH accepted AS (
       INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name, request)
       SELECT c.tenant, gen_random_uuid(), '${NOTHING}', class, c.backend, 'thing', gen_random_uuid(), 'thing', '{}'
         FROM generate_series(1, $4::int), unnest($3::text[]) AS class, unnest($1::uuid[], $2::uuid[]) AS c (tenant, backend)
       RETURNING tenant_id, id, resource_id, seq, priority)
     INSERT INTO trivet.operation_slot (tenant_id, operation_id, resource_id, slot, own, seq, priority)
     SELECT tenant_id, id, resource_id, 'lifecycle', true, seq, priority FROM accepted`,
    [callers.map(one => one.tenantId), callers.map(one => one.backendId), classes, count],
  );
}

/** As a gateway accepts it: it takes a free place of its tenant, and is rung. */
export async function offer(
  database: Database,
  doorbell: Doorbell,
  { tenantId, backendId }: Caller,
  queueClass: QueueClass,
): Promise<void> {
  const [id, resource] = [uuidv7(), randomUUID()];
  const operation = {
    ...{ id, tenantId, backendId, kind: NOTHING, class: queueClass, request: {}, unattended: true as const },
    ...{ resourceKind: 'thing', resourceId: resource, resourceName: 'thing' },
    slots: [{ resource, slot: 'lifecycle', own: true }],
  };
  const { ring } = await database.withTenant(tenantId, tx => accept(tx, operation, CAP));
  if (ring) await doorbell.ring([ring]);
}
