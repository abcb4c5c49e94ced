import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ownFolder, xfsFolder } from '#test/block-backend/file-harness';
import { BlockJobs, hostOf, must, persist } from '#test/block-crash/block-jobs';
import { lastingMismatches } from '#test/block-crash/block-truth';
import { PoolFiles } from '#test/block-crash/pool-files';
import { TestAppliance } from '#test/support/appliance';
import { OwnFileSystem } from '#test/support/own-file-system';
import { until } from '#test/support/parts';
import { daemonsOf } from '#test/support/tgt-daemons';

const MIB = 1024 ** 2;
/** As many as a file system has places for creations, twice. */
const HANGING = 8;
const BACK_MS = 10_000;

/** A disk that answers looks, and no write any more: what hangs there stays in the kernel, whoever ends the call. */
let disk: OwnFileSystem;
let appliance: TestAppliance;
let jobs: BlockJobs;
let files: PoolFiles;
let healthy: string;

beforeAll(async () => {
  disk = await OwnFileSystem.make();
  const frozen = join(disk.path, 'pool');
  mkdirSync(frozen);
  healthy = ownFolder(xfsFolder());
  appliance = await TestAppliance.start({
    backend: 'fake',
    block: 'xfs',
    env: { TRIVET_POOLS: `default=${healthy},frozen=${frozen}`, TRIVET_RECONCILE_MS: '150' },
  });
  files = new PoolFiles(frozen);
  jobs = new BlockJobs(appliance);
});
afterAll(async () => {
  await disk?.thaw();
  await appliance?.close();
  await disk?.remove();
  if (healthy) rmSync(healthy, { recursive: true, force: true });
});

const create = (name: string, pool: string) => jobs.create(name, MIB, { config: { pool, destroyOnDelete: true } });
const stateOf = async (name: string) => {
  const [row] = await appliance.database.query<{ state: string; reason: string | null }>(
    'SELECT state, reason FROM trivet.pool WHERE name = $1',
    [name],
  );
  return row;
};
const leased = () =>
  appliance.database.query<{ id: string; until: Date }>(
    "SELECT id, lease_until AS until FROM trivet.operation WHERE pool = 'frozen' AND state = 'running' AND lease_until > now()",
  );

it('loses the leases of what hangs in it, and holds up neither other pools nor a tgtd that has to come back', async () => {
  const host = hostOf('node');
  await must(() => jobs.host(host));
  const { id } = (await must(() => create('published', 'default'))).body;
  await must(() => jobs.publish(id, host));
  await must(() => create('before', 'frozen'));
  await disk.freeze();
  const hanging = Array.from({ length: HANGING }, (_, n) => persist(() => create(`hanging-${n}`, 'frozen'), 120_000));
  await until('some of them have begun', async () => (await leased()).length > 0);
  for (let n = 0; n < 20; n++) await must(() => create(`beside-${n}`, 'default'));

  await until('the pool is down', async () => (await stateOf('frozen'))?.state === 'down');
  expect(await stateOf('frozen')).toMatchObject({ reason: expect.stringMatching(/its calls do not return/) });
  expect(await stateOf('default')).toMatchObject({ state: 'up' });
  await until('nobody has a lease there any more', async () => (await leased()).length === 0);
  const open = await appliance.operations("pool = 'frozen' AND finished_at IS NULL");
  expect(open.length).toBeGreaterThan(0);

  const killed = daemonsOf(appliance.tgtPath);
  expect(killed.length).toBeGreaterThan(0);
  for (const pid of killed) process.kill(pid, 'SIGKILL');
  await until(
    'tgtd is back',
    () => {
      const now = daemonsOf(appliance.tgtPath);
      return now.length > 0 && !now.some(pid => killed.includes(pid));
    },
    BACK_MS,
  );
  await must(() => create('after', 'default'));
  // It stays so for as long as nothing is answered there: who tries again is told at once, where what hangs keeps its lease for three seconds.
  await until('nobody keeps a lease there', async () => (await leased()).length === 0, 1_000);

  await disk.thaw();
  for (const answers of await Promise.all(hanging)) expect(answers.at(-1)).toMatchObject({ code: '200' });
  await appliance.settled();
  expect(await files.images()).toHaveLength(1 + HANGING);
  expect(await files.leftovers()).toEqual([]);
  for (const { path } of await files.images()) await must(() => jobs.delete(path.split('/').at(-1)!));
  expect(await lastingMismatches(Object.create(appliance, { poolPath: { value: healthy } }))).toEqual([]);
}, 180_000);
