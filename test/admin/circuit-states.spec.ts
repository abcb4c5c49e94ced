import { afterAll, beforeAll, expect, it } from 'vitest';
import { Overview } from '#admin/overview/overview';
import { readEngineFigures } from '#operations/workers/figures';
import { uuidv7 } from '#platform/uuid';
import { reportBackends } from '#storage/block/pools/pool-report';
import { AdminHouse, type HouseTenant } from '#test/admin/admin-house';

/** Three states of a circuit, the same wherever they are said: API and page, overview, status, metrics, operations. */
let house: AdminHouse;
let tenant: HouseTenant;
beforeAll(async () => {
  house = await AdminHouse.create();
  tenant = await house.tenant('circuits');
  await accepted('pending', null);
  // Its worker is gone: no other takes it up while the circuit is open.
  await accepted('running', "now() - interval '1 s'");
  await accepted('running', "now() + interval '1 hour'");
});
afterAll(() => house?.close());

const ids: string[] = [];
async function accepted(state: string, leaseUntil: string | null): Promise<void> {
  const id = uuidv7();
  ids.push(id);
  await house.query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                   request, state, lease_owner, lease_until)
     VALUES ($1, $2, 'bucket.create', 'fast', $3, 'bucket', $4, 'photos', '{}', $5, gen_random_uuid(), ${leaseUntil ?? 'NULL'})`,
    [tenant.id, id, tenant.backends.fake, uuidv7(), state],
  );
}

const circuit = (openUntil: string) =>
  house.query(
    `INSERT INTO trivet.backend_circuit AS c (tenant_id, backend_id, failures, open_until, reason, opened_at, probed_at)
     VALUES ($1, $2, 3, ${openUntil}, CASE WHEN ${openUntil} IS NOT NULL THEN 'no answer' END, now(), now())
     ON CONFLICT (tenant_id, backend_id) DO UPDATE SET open_until = excluded.open_until, reason = excluded.reason`,
    [tenant.id, tenant.backends.fake],
  );

/** Everywhere that it is said. */
async function said() {
  const { workers, names } = house.options;
  const overview = await new Overview({
    database: house.database,
    workers,
    names,
    version: '1',
    legs: async () => [],
    certificate: () => undefined,
  }).read(tenant.id);
  const { body: one } = await house.call(tenant.viewer, 'GET', '/tenants/circuits/backends/fake');
  const glimpse = overview.backends.find(({ name }) => name === 'fake')!;
  const report = (await reportBackends(house.database)).find(
    each => each.tenantId === tenant.id && each.name === 'fake',
  )!;
  const figures = await readEngineFigures(house.database);
  const waits = await Promise.all(
    ids.map(async id => (await house.call(tenant.viewer, 'GET', `/operations/${id}`)).body.waitsForBackend !== null),
  );
  return {
    health: [one.health.state, glimpse.health, report.health.state],
    circuit: [one.health.circuit, glimpse.circuit, report.health.circuit],
    reason: [one.health.reason, report.health.reason],
    waiting: [overview.operations.waitingForBackend, report.waiting, figures.waitingForBackend],
    counted: figures.circuits,
    waits,
    notices: overview.attention.filter(({ what }) => what.includes('does not answer')).map(({ what }) => what),
    detail: glimpse.detail,
  };
}

it('an open one is down everywhere, with what waits for it: all that no worker has', async () => {
  await circuit("now() + interval '1 hour'");
  expect(await said()).toEqual({
    health: ['down', 'down', 'down'],
    circuit: ['open', 'open', 'open'],
    reason: ['no answer', 'no answer'],
    waiting: [2, 2, 2],
    counted: { closed: 0, half_open: 0, open: 1 },
    waits: [true, true, false],
    notices: ['Backend fake of tenant circuits does not answer: no answer.'],
    detail: 'no answer',
  });
});

it('a half open one is no closed one: it is down everywhere, and the same wait for it', async () => {
  await circuit("now() - interval '1 s'");
  const reason = 'no answer; no worker has probed it in time, so work is tried on it';
  expect(await said()).toEqual({
    health: ['down', 'down', 'down'],
    circuit: ['half_open', 'half_open', 'half_open'],
    reason: [reason, reason],
    waiting: [2, 2, 2],
    counted: { closed: 0, half_open: 1, open: 0 },
    waits: [true, true, false],
    notices: [`Backend fake of tenant circuits does not answer: ${reason}.`],
    detail: reason,
  });
});

it('a closed one is up everywhere, and nothing waits for it', async () => {
  await circuit('NULL::timestamptz');
  expect(await said()).toEqual({
    health: ['up', 'up', 'up'],
    circuit: ['closed', 'closed', 'closed'],
    reason: [null, null],
    waiting: [0, 0, 0],
    counted: { closed: 1, half_open: 0, open: 0 },
    waits: [false, false, false],
    notices: [],
    detail: 'it answers',
  });
});
