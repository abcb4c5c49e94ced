import { afterAll, beforeAll, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import { Jobs, mustSucceed } from '#test/crash/jobs';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';
import { checkKinds } from '../../apps/cli/src/doctor/database.js';

let appliance: TestAppliance;
beforeAll(async () => {
  appliance = await TestAppliance.start({ backend: 'fake' });
});
afterAll(() => appliance?.close());

/** As a gateway of the next release accepts it. */
const ACCEPTED = `
INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name, request, created_at)
SELECT tenant_id, $1, 'bucket.split', class, backend_id, resource_kind, $2, 'next', '{}', now() - interval '2 minutes'
  FROM trivet.operation LIMIT 1`;

it('operations of a kind that no worker knows wait, and somebody is told', async () => {
  const { database } = appliance;
  const doctor = async () => (await checkKinds(appliance.env.TRIVET_DATABASE_ENGINE_URL!))[0]!;
  const metric = async () =>
    /^trivet_operations_unknown (\d+)$/m.exec(await appliance.process('worker').metrics())?.[1];
  await mustSucceed(() => new Jobs(appliance.client()).create('known'));
  const id = uuidv7();
  await database.query(ACCEPTED, [id, uuidv7()]);
  expect(await doctor()).toMatchObject({ level: 'warn', detail: '1 wait that no worker knows: bucket.split' });
  await until('the metric says so', async () => (await metric()) === '1');
  expect(await appliance.operations(`id = '${id}'`)).toMatchObject([{ state: 'pending', attempt: 0 }]);

  // A worker of a release that does not say what it knows may know it.
  const beat = 'INSERT INTO trivet.worker (id, host, pid, version, concurrency, kinds) VALUES ($1, $2, 1, $2, 1, $3)';
  const [silent, next] = [uuidv7(), uuidv7()];
  await database.query(beat, [silent, 'silent', null]);
  expect((await doctor()).level).toBe('ok');
  await database.query('DELETE FROM trivet.worker WHERE id = $1', [silent]);
  expect((await doctor()).level).toBe('warn');
  await database.query(beat, [next, 'next', ['bucket.split']]);
  expect((await doctor()).level).toBe('ok');
});
