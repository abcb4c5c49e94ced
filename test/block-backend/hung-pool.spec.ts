import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StageRef } from '#backends/block-backend';
import { LANES } from '#backends/reflink/file-system-calls';
import { PoolAnswers } from '#backends/reflink/pool-answers';
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import { unleased } from '#platform/lease-signal';
import { OWNER, ownFolder, pool, xfsFolder } from '#test/block-backend/file-harness';
import { OwnFileSystem } from '#test/support/own-file-system';
import { until } from '#test/support/parts';

const soon = () => unleased(AbortSignal.timeout(30_000));
describe.skipIf(!xfsFolder())('a pool whose calls hang', () => {
  let folder: string;
  let xfs: OwnFileSystem | undefined;
  let backend: ReflinkBackend;
  let fence = 0;

  const stage = (name: string): Promise<void> => {
    const ref: StageRef = {
      pool: name,
      imageId: crypto.randomUUID(),
      operationId: crypto.randomUUID(),
      fence: `${++fence}`,
    };
    return backend.stage(ref, { kind: 'empty', sizeBytes: 1_048_576n, thick: false }, soon());
  };
  const stateOf = async (name: string) =>
    (await backend.inspectPools(soon())).find(status => status.name === name) ?? { state: 'absent' };

  beforeAll(async () => {
    folder = ownFolder();
    xfs = await OwnFileSystem.make();
    mkdirSync(join(folder, 'good'));
    const pools = [pool('frozen', xfs.path), pool('good', join(folder, 'good'))];
    backend = new ReflinkBackend(pools, OWNER, new PoolAnswers(1_000, { oddMs: 500, canaryMs: 1_000, waitMs: 60_000 }));
    for (const { name } of pools) await backend.preparePool(name, soon());
  });
  afterAll(async () => {
    await xfs?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  it('keeps a few threads, is found out by its canary, and holds up no other pool', async () => {
    await Promise.all(['frozen', 'good'].map(stage));
    await xfs!.freeze();
    const ends = Promise.allSettled(Array.from({ length: LANES.make * 4 }, () => stage('frozen')));
    await stage('good');
    await until('the hung pool is down', async () => (await stateOf('frozen')).state === 'down');
    expect(await stateOf('frozen')).toMatchObject({ reason: expect.stringMatching(/its calls do not return/) });
    for (const end of await ends)
      expect(end).toMatchObject({ status: 'rejected', reason: { kind: 'timeout', resource: 'pool frozen' } });
    await expect(stage('frozen')).rejects.toMatchObject({ kind: 'unavailable', resource: 'pool frozen' });
    expect(await stateOf('good')).toMatchObject({ state: 'up' });
    for (let n = 0; n < 20; n++) await stage('good');
  });

  it('is up again when it answers, and what came late has left nothing', async () => {
    await xfs!.thaw();
    await until('the pool is up', async () => (await stateOf('frozen')).state === 'up');
    await stage('frozen');
    // Both are staged, and not named.
    await until('what came late is gone', async () => {
      const found = [];
      for await (const image of backend.listImages('frozen', soon())) found.push(image);
      return found.length === 2;
    });
  });
});
