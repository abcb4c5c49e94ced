import { randomUUID } from 'node:crypto';
import { Overview } from '#admin/overview/overview';
import { blockBackendKinds } from '#backends/registry';
import { LeaseManager } from '#operations/leases/lease';
import { readEngineFigures } from '#operations/workers/figures';
import { operationRetention } from '#operations/workers/operation-retention';
import { Reconciler } from '#operations/workers/reconciler';
import { readBlockFigures } from '#storage/block/pools/block-figures';
import type { AdminHouse } from '#test/admin/admin-house';
import { TENANTS } from '#test/bench/scale/fill';
import type { Measured } from '#test/bench/scale/measured';

const CAP = 32;
const CLASSES = ['fast', 'copy', 'destroy', 'index'];
const WAITING = 64;

/** What workers and gateways look at again and again whatever happens. */
export function looksOfTheEngine(house: AdminHouse): Measured[] {
  const { database, options } = house;
  const doorbell = { ring: async () => true, close: async () => {} };
  const reconciler = new Reconciler(database, doorbell, () => {}, { roundMs: 2_000, cap: CAP, kinds: ['test.work'] });
  const leases = new LeaseManager(database, randomUUID(), 30_000, ['test.work'], () => {});
  const retention = operationRetention(database);
  const overview = () =>
    new Overview({ database, ...options, version: '', legs: async () => [], certificate: () => undefined });
  return [
    { name: 'due', run: () => reconciler.run() },
    { name: 'hand back at SIGTERM', run: () => leases.handBack() },
    { name: 'retention of operations', run: () => retention.run(AbortSignal.timeout(60_000)) },
    { name: 'overview', run: () => overview().read() },
    { name: 'figures of the engine', run: () => readEngineFigures(database) },
    { name: 'figures of volumes', run: () => readBlockFigures(database, blockBackendKinds()) },
  ];
}

export const BACKLOG = TENANTS * CLASSES.length * WAITING;

/** Every tenant has all its places in each class in use, and as many operations wait behind them. */
export async function fillBacklog(house: AdminHouse): Promise<void> {
  const places = CAP + WAITING;
  await house.query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name, request, state,
            place, dispatch_no, dispatched_at, lease_owner, lease_until)
     SELECT scale.id(1, t), scale.id(12, n), 'test.work', class, scale.id(2, t), 'thing', scale.id(13, n), 'thing-' || n, '{}',
            CASE WHEN i <= $2 THEN 'running' ELSE 'pending' END, CASE WHEN i <= $2 THEN i END, (i <= $2)::int,
            CASE WHEN i <= $2 THEN now() END, CASE WHEN i <= $2 THEN gen_random_uuid() END,
            CASE WHEN i <= $2 THEN now() + interval '1 hour' END
       FROM (SELECT t, c, i, ($1::text[])[c] AS class, (t * 100 + c) * 1000 + i AS n
               FROM generate_series(0, $4::int - 1) AS t, generate_series(1, cardinality($1::text[])) AS c, generate_series(1, $3::int) AS i) AS made`,
    [CLASSES, CAP, places, TENANTS],
  );
  await house.query(
    `INSERT INTO trivet.operation_slot (tenant_id, operation_id, resource_id, slot, own, seq, priority, held)
     SELECT tenant_id, id, resource_id, 'lifecycle', true, seq, 0, state = 'running' FROM trivet.operation WHERE finished_at IS NULL`,
  );
  await house.query('ANALYZE trivet.operation, trivet.operation_slot');
}

export async function dropBacklog(house: AdminHouse): Promise<void> {
  await house.query('DELETE FROM trivet.operation_slot');
  await house.query('DELETE FROM trivet.operation WHERE finished_at IS NULL');
  await house.query('VACUUM trivet.operation');
}
