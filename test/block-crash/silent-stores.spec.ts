import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodeSealed } from '#platform/crypto/secrets';
import { uuidv7 } from '#platform/uuid';
import { BlockJobs, hostOf, must } from '#test/block-crash/block-jobs';
import { login } from '#test/block-crash/block-targets';
import { weekly } from '#test/protection/protection-house';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';
import { SilentServer } from '#test/support/silent-server';
import { daemonsOf } from '#test/support/tgt-daemons';

const MIB = 1024 ** 2;
const TENANTS = 10;
/** What is promised of tgtd, whatever else hangs. */
const BACK_MS = 10_000;

/** Ten tenants, each with a store of its own that swallows what it is asked, and more buckets to be looked up than one round has. */
let silent: SilentServer;
let appliance: TestAppliance;
beforeAll(async () => {
  silent = await SilentServer.start();
  appliance = await TestAppliance.start({ backend: 'fake', block: 'xfs' });
});
afterAll(async () => {
  await appliance?.close();
  await silent?.close();
});

async function addSilentTenant(name: string): Promise<void> {
  const { query } = appliance.database;
  const [tenantId, backendId] = [uuidv7(), uuidv7()];
  const place = { tenantId, table: 'backend', rowId: backendId, column: 'credentials' };
  const credentials = JSON.stringify({ accessKeyId: 'key', secretAccessKey: 'secret' });
  await query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2)', [tenantId, name]);
  await query("INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, 'rgw', 'rgw', $3)", [
    tenantId,
    backendId,
    JSON.stringify({ endpoint: silent.url }),
  ]);
  await query(
    `INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed) VALUES ($1, 'backend', $2, 'credentials', $3)`,
    [tenantId, backendId, encodeSealed(appliance.secrets.seal(credentials, place))],
  );
  await query(
    `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint, audited_at, measured_at)
     SELECT $1, gen_random_uuid(), $2, 'bucket-' || n, 'created', 'ready', '{"v":1}', '', now() - interval '1 day',
            now() - interval '1 day'
       FROM generate_series(1, 30) AS n`,
    [tenantId, backendId],
  );
}

it('a tgtd that is killed while ten stores are silent is back within 10 s, with its targets; pools and schedules are looked after', async () => {
  const { query } = appliance.database;
  const jobs = new BlockJobs(appliance);
  const host = hostOf('patient');
  const volume = (await must(() => jobs.create('served', 8 * MIB))).body;
  await must(() => jobs.host(host));
  const publication = (await must(() => jobs.publish(volume.id, host))).body;
  await query(
    `INSERT INTO trivet.protection_template (tenant_id, id, name, schedules)
     SELECT id, gen_random_uuid(), 'mine', $1 FROM trivet.tenant WHERE name = 'default'`,
    [JSON.stringify([weekly('weekly', 2)])],
  );
  const scheduled = await appliance.driver().createVolume('scheduled', MIB, { protection_template: 'mine' });
  const session = await login(appliance, host, volume.id);
  const identity = await session.inquiryPage(0x83);
  await session.write(0, Buffer.alloc(4_096, 7));

  for (let n = 0; n < TENANTS; n++) await addSilentTenant(`silent-${n}`);
  await until('each store is asked', () => silent.unanswered >= TENANTS);
  const [pid] = daemonsOf(appliance.tgtPath);
  process.kill(pid!, 'SIGKILL');
  const killed = performance.now();
  const due = "UPDATE trivet.volume_protection SET next_run_at = now() - interval '1 minute' WHERE volume_id = $1";
  await query(due, [scheduled.id]);
  const left = () => BACK_MS - (performance.now() - killed);

  const again = await until('a host is let in', () => login(appliance, host, volume.id).catch(() => undefined), left());
  expect(silent.unanswered, 'still silent').toBeGreaterThan(0);
  expect((await again.inquiryPage(0x83)).equals(identity)).toBe(true);
  expect(await again.read(0, 4_096)).toEqual(Buffer.alloc(4_096, 7));
  await again.close();
  expect((await must(() => jobs.publish(volume.id, host))).body).toEqual(publication);

  const isSnapped = async () => (await appliance.driver().snapshotsOf(scheduled.id)).length === 1;
  await until('the snapshot that was due is taken', isSnapped, BACK_MS);
  const isLookedAt = async () => {
    const since = "SELECT FROM trivet.pool WHERE checked_at > now() - $1 * interval '1 ms'";
    return (await query(since, [performance.now() - killed])).length === 1;
  };
  await until('the pool was looked at since', isLookedAt, BACK_MS);
  expect(silent.unanswered, 'still silent').toBeGreaterThan(0);
});
