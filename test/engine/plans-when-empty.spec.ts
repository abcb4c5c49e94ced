import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claiming } from '#operations/accepting/accept';
import { PLANNING } from '#platform/database/database';
import { sqlFile } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import { CLAIM_BUCKETS } from '#storage/object/buckets/bucket-store';
import { EngineHouse } from '#test/engine/engine-house';
import { wakeText } from '#test/engine/wake-text';

/**
 * A new appliance plans its statements while its tables are empty, and keeps the plans while they fill: minutes, until
 * their statistics come. Then an index that is only good for its first column costs a whole history at each operation.
 */
const HISTORY = 20_000;
const FEW = 200;
/** 8 KiB each, of tables and indexes. A scan inside of an index shows only here. */
const FEW_PAGES = 100;

let house: EngineHouse;
let app: pg.Client;
let engine: pg.Client;

const literal = (value: unknown): string =>
  value === null
    ? 'NULL'
    : Array.isArray(value)
      ? `ARRAY[${value.map(literal).join(',')}]`
      : `'${String(value).replaceAll("'", "''")}'`;
const typed = (value: unknown, type: string) => `${literal(value)}::${type}`;
/** In the role that sends it, and without effect. */
const explain = async (name: string, how: string, params: readonly unknown[]) => {
  const client = clientOf(name);
  await client.query(client === app ? `BEGIN; SET LOCAL trivet.tenant = '${house.tenantId}'` : 'BEGIN');
  try {
    return (await client.query(`EXPLAIN (${how}) ${execute(name, params)}`)).rows;
  } finally {
    await client.query('ROLLBACK');
  }
};

interface Prepared {
  engine?: true;
  types: string[];
  /** Other than that of the file of its name. */
  text?: () => string | Promise<string>;
  params(ids: { waiting: string; running: string; fence: string; worker: string; resource: string }): unknown[];
}

const passOn = { types: ['uuid[]', 'uuid[]', 'text[]', 'smallint[]', 'uuid[]', 'int'] };

const operationAt = (resource: string) => {
  const slots = [{ resource, slot: 'lifecycle', own: true }];
  const names = { resourceKind: 'thing', resource, resourceName: 'thing' };
  const operation = { id: uuidv7(), kind: 'test.work', class: 'fast', backend: house.backendId, ...names };
  return { ...operation, request: {}, priority: 0, waited: true, slots };
};

/** Every statement of the way of an operation. */
const statements: Record<string, Prepared> = {
  accept: {
    types: ['uuid', 'json', 'int'],
    params: ({ resource }) => [house.tenantId, JSON.stringify([operationAt(resource)]), 64],
  },
  accept_new: {
    types: ['uuid', 'json', 'int', 'json'],
    text: () => claiming(CLAIM_BUCKETS).text,
    params: () => {
      const operation = operationAt(uuidv7());
      const names = { name: operation.id, backend: house.backendId };
      const row = { id: operation.resource, ...names, desired: {}, fingerprint: '00', operation: operation.id };
      return [house.tenantId, JSON.stringify([operation]), 64, JSON.stringify([row])];
    },
  },
  cancel: {
    types: ['uuid', 'uuid', 'text[]'],
    params: ({ resource }) => [house.tenantId, resource, ['test.work']],
  },
  claim: {
    engine: true,
    types: ['uuid[]', 'uuid', 'int', 'text[]', 'text'],
    params: ({ waiting }) => [[waiting], randomUUID(), 60_000, ['test.work'], 'host'],
  },
  renew: {
    engine: true,
    types: ['uuid', 'int', 'uuid[]', 'bigint[]'],
    params: ({ running, fence }) => [randomUUID(), 60_000, [running], [fence]],
  },
  hand_back: { engine: true, types: ['uuid', 'uuid[]', 'float8[]'], params: () => [randomUUID(), [], []] },
  due: {
    engine: true,
    types: ['int', 'int', 'int', 'text[]', 'text'],
    params: () => [64, 6_000, 500, ['test.work'], 'host'],
  },
  point: {
    types: ['uuid[]', 'uuid[]', 'bigint[]', 'uuid', 'text[]', 'jsonb[]'],
    params: ({ running, fence, worker }) => [[house.tenantId], [running], [fence], worker, ['step'], ['{}']],
  },
  finish: {
    types: ['uuid[]', 'uuid[]', 'bigint[]', 'uuid', 'text[]', 'jsonb[]', 'jsonb[]'],
    params: ({ running, fence, worker }) => [
      [house.tenantId],
      [running],
      [fence],
      worker,
      ['succeeded'],
      [null],
      [null],
    ],
  },
  retry: {
    types: ['uuid', 'uuid', 'bigint', 'uuid', 'jsonb', 'int', 'int', 'text', 'jsonb', 'boolean'],
    params: ({ running, fence, worker }) => [house.tenantId, running, fence, worker, '{}', 1, 0, 'step', '{}', false],
  },
  fair_cap: { engine: true, types: ['int', 'int', 'int'], params: () => [64, 2_000, 15_000] },
  pass_on: {
    ...passOn,
    text: () => wakeText(house.testDatabase),
    params: ({ resource }) => [[house.tenantId], [house.backendId], ['fast'], [60], [resource], 64],
  },
  // The look before it.
  nobody_to_wake: {
    ...passOn,
    text: () => 'SELECT * FROM trivet.pass_on($1, $2, $3, $4, $5, $6)',
    params: () => [[house.tenantId], [house.backendId], ['destroy'], [60], [randomUUID()], 64],
  },
  look: {
    types: ['uuid', 'uuid', 'text', 'uuid[]', 'int'],
    params: ({ resource }) => [house.tenantId, house.backendId, 'fast', [resource], 64],
  },
};
const names = Object.keys(statements);
const clientOf = (name: string): pg.Client => (statements[name]!.engine ? engine : app);
const execute = (name: string, params: readonly unknown[]) =>
  `EXECUTE ${name} (${params.map((value, n) => typed(value, statements[name]!.types[n]!)).join(', ')})`;

beforeAll(async () => {
  house = await EngineHouse.create();
  const { tenantId, backendId, testDatabase } = house;
  app = new pg.Client({ connectionString: testDatabase.appUrl, options: PLANNING });
  engine = new pg.Client({ connectionString: testDatabase.engineUrl, options: PLANNING });
  await Promise.all([app.connect(), engine.connect()]);
  // The fence refuses what is not there: planned it is all the same.
  const nobody = { waiting: uuidv7(), running: uuidv7(), fence: '1', worker: uuidv7(), resource: uuidv7() };
  for (const name of names) {
    const { types, params, text } = statements[name]!;
    const query = (await text?.()) ?? sqlFile('operations', name).text;
    await clientOf(name).query(`PREPARE ${name} (${types.join(', ')}) AS ${query}`);
    await explain(name, 'FORMAT TEXT', params(nobody));
  }
  // What functions send is planned by their first call.
  for (const name of ['accept_new', 'nobody_to_wake']) await explain(name, 'ANALYZE', statements[name]!.params(nobody));
  await testDatabase.query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                   request, state, finished_at)
     SELECT $1, gen_random_uuid(), 'test.work', 'fast', $2, 'thing', gen_random_uuid(), 'thing', '{}', 'succeeded', now()
       FROM generate_series(1, $3::int)`,
    [tenantId, backendId, HISTORY],
  );
  await testDatabase.query(
    `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint)
     SELECT $1, gen_random_uuid(), $2, 'bucket-' || n, 'created', 'ready', '{}', '' FROM generate_series(1, $3::int) AS n`,
    [tenantId, backendId, HISTORY],
  );
  // Slots come and go: what is left of those that went is in the indexes.
  await testDatabase.query(
    `INSERT INTO trivet.operation_slot (tenant_id, operation_id, resource_id, slot, own, seq, priority)
     SELECT tenant_id, id, resource_id, 'lifecycle', true, seq, 0 FROM trivet.operation`,
  );
});
afterAll(async () => {
  await app?.end();
  await engine?.end();
  await house?.close();
});

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
  'Rows Removed by Filter'?: number;
  Plans?: Plan[];
}
const nodes = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodes)];

describe('planned on empty tables, with a history', () => {
  it.each(names)('%s looks at few rows', async name => {
    const resource = randomUUID();
    const running = await house.accept(resource);
    const { manager } = house.manager(60_000);
    const lease = (await manager.claim(running))!;
    const waiting = await house.placed(await house.accept(randomUUID()));
    const ids = { waiting, running, fence: lease.operation.fence, worker: manager.workerId, resource };
    const look = () => explain(name, 'ANALYZE, BUFFERS, FORMAT JSON', statements[name]!.params(ids));
    // The first row of an index makes its root, which none after it does.
    await look();
    const rows = await look();
    const plan = rows[0]['QUERY PLAN'][0].Plan as Plan;
    const looked = nodes(plan).map(
      node => (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
    );
    expect(Math.max(...looked)).toBeLessThan(FEW);
    expect(plan['Shared Hit Blocks'] + plan['Shared Read Blocks']).toBeLessThan(FEW_PAGES);
  });
});

it('no statement waits for processes that would share its work', async () => {
  for (const cost of [
    'parallel_setup_cost',
    'parallel_tuple_cost',
    'min_parallel_table_scan_size',
    'min_parallel_index_scan_size',
  ])
    await engine.query(`SET ${cost} = 0`);
  const plan = async () => JSON.stringify((await engine.query('EXPLAIN SELECT count(*) FROM trivet.operation')).rows);
  expect(await plan()).not.toContain('Gather');
  // By itself PostgreSQL would.
  await engine.query('SET max_parallel_workers_per_gather = 2');
  expect(await plan()).toContain('Gather');
});
