import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { BlockJobs, hostOf, must } from '#test/block-crash/block-jobs';
import { login, targetsOf } from '#test/block-crash/block-targets';
import { PoolFiles } from '#test/block-crash/pool-files';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const MIB = 1024 ** 2;
const SIZE = 8 * MIB;
const LARGER = 16 * MIB;
const PASSWORD = 'password of an administrator';
const HOST = hostOf('patient');

let folder: string;
let appliance: TestAppliance | undefined;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'trivet-growth-'));
  writeFileSync(join(folder, 'admin'), PASSWORD, { mode: 0o600 });
});
afterEach(async () => {
  await appliance?.close();
  appliance = undefined;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Workers compare volumes and images all the time. */
const startWith = async (block: 'xfs' | 'fake-xfs'): Promise<TestAppliance> => {
  const env = { TRIVET_ADMIN_PASSWORD_FILE: join(folder, 'admin'), TRIVET_BLOCK_AUDIT_MS: '500' };
  appliance = await TestAppliance.create({ backend: 'fake', block, env });
  await appliance.gateway();
  return appliance;
};

async function published({ appliance, jobs }: { appliance: TestAppliance; jobs: BlockJobs }): Promise<string> {
  const { id } = (await must(() => jobs.create('grown', SIZE))).body;
  await must(() => jobs.host(HOST));
  await must(() => jobs.publish(id, HOST));
  await appliance.settled();
  return id;
}

const sizeOfFile = (of: TestAppliance, id: string) => statSync(new PoolFiles(of.poolPath).path('volume', id)).size;
const stateOf = async (of: TestAppliance, id: string) =>
  (await of.database.query('SELECT size_bytes, condition, growing_to FROM trivet.volume WHERE id = $1', [id]))[0];
const findings = async (of: TestAppliance) =>
  (await of.database.query<{ kind: string }>('SELECT kind FROM trivet.finding')).map(({ kind }) => kind);

/** As an administrator does it. */
async function giveUp({ cspUrl }: TestAppliance, operation: string): Promise<void> {
  const send = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(`${cspUrl}/api/v1${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: cspUrl, ...headers },
      body: JSON.stringify(body),
    });
  const session = await send('/session', { username: 'admin@appliance', password: PASSWORD });
  const { csrf } = (await session.json()) as { csrf: string };
  const cookie = session.headers.get('set-cookie')!.split(';')[0]!;
  const resolved = await send(
    `/operations/${operation}/resolve`,
    { reason: 'nobody waits for it' },
    { cookie, 'x-csrf-token': csrf },
  );
  expect(resolved.status, await resolved.text()).toBe(200);
}

it('by a person, after the file has grown: its host reads and writes on, it is not lost, and an expansion takes what is there', async () => {
  const house = await startWith('xfs');
  const jobs = new BlockJobs(house);
  await house.worker();
  const id = await published({ appliance: house, jobs });
  const session = await login(house, HOST, id);
  await session.write(0, Buffer.alloc(4_096, 7));
  await house.process('worker').stop();

  // A defect on the way to the target, ten times.
  const worker = await house.worker({ TRIVET_FAILPOINT: 'volume.expand:resizeTarget:call=error' });
  const asked = jobs.expand(id, LARGER);
  const parked = await until('a person has to look', async () => {
    await house.database.query("UPDATE trivet.operation SET next_run_at = now() WHERE state = 'pending'");
    return (await house.operations("state = 'needs_attention'"))[0];
  });
  expect(parked.kind).toBe('volume.expand');
  await giveUp(house, parked.id);
  await asked;
  await worker.stop();
  await house.worker();

  await until('an audit has seen it', async () => (await findings(house)).includes('larger_image'));
  await house.settled();
  expect(await findings(house)).toEqual(['larger_image']);
  expect(sizeOfFile(house, id)).toBe(LARGER);
  expect(await stateOf(house, id)).toEqual({ size_bytes: `${SIZE}`, condition: null, growing_to: null });
  await session.write(4_096, Buffer.alloc(4_096, 8));
  expect(await session.read(0, 8_192)).toEqual(Buffer.concat([Buffer.alloc(4_096, 7), Buffer.alloc(4_096, 8)]));

  await must(() => jobs.expand(id, LARGER));
  expect(await session.capacity()).toBe(LARGER);
  await until('no finding is left', async () => (await findings(house)).length === 0);
  await session.close();
});

it('by a pool that was full after the file had grown: it fails, is not lost, and can be asked for again', async () => {
  const house = await startWith('fake-xfs');
  const jobs = new BlockJobs(house);
  await house.worker();
  const id = await published({ appliance: house, jobs });
  const served = await targetsOf(house);
  house.fakeBlock!.addFault({ method: 'growImage', mode: 'fail-after', error: 'resource_exhausted' });
  expect((await jobs.expand(id, LARGER)).code).toBe('507');
  expect(sizeOfFile(house, id)).toBe(LARGER);

  await until('an audit has seen it', async () => (await findings(house)).includes('larger_image'));
  await house.settled();
  expect(await stateOf(house, id)).toEqual({ size_bytes: `${SIZE}`, condition: null, growing_to: null });
  expect(await targetsOf(house)).toEqual(served);
  await must(() => jobs.expand(id, LARGER));
  expect(await stateOf(house, id)).toEqual({ size_bytes: `${LARGER}`, condition: null, growing_to: null });
  await until('no finding is left', async () => (await findings(house)).length === 0);
});
