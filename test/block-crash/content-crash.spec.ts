import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BlockJobs, hostOf, must } from '#test/block-crash/block-jobs';
import { lastingMismatches } from '#test/block-crash/block-truth';
import { PoolFiles } from '#test/block-crash/pool-files';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';
import { daemonsOf } from '#test/support/tgt-daemons';

const BLOCK = 4_096;
const STRIDE = 2 * BLOCK;
/** A clone of so many takes long enough to be met. */
const EXTENTS = 40_000;
const SIZE = EXTENTS * STRIDE;

/** Every second block holds its own number; what is between them are holes. */
function scatter(path: string): void {
  const fd = openSync(path, 'r+');
  const block = Buffer.alloc(BLOCK);
  for (let at = 0; at < EXTENTS; at++) {
    block.writeUInt32LE(at + 1, 0);
    block.writeUInt32LE(at + 1, BLOCK - 4);
    writeSync(fd, block, 0, BLOCK, at * STRIDE);
  }
  closeSync(fd);
}

/** The first place where the file is not exactly what `scatter` wrote. */
function wrongAt(path: string): number | undefined {
  const wanted = Buffer.alloc(STRIDE);
  const portion = Buffer.alloc(128 * STRIDE);
  const fd = openSync(path, 'r');
  try {
    for (let at = 0; at < EXTENTS; ) {
      const blocks = Math.min(128, EXTENTS - at);
      if (readSync(fd, portion, 0, blocks * STRIDE, at * STRIDE) !== blocks * STRIDE) return at;
      for (let of = 0; of < blocks; of++, at++) {
        wanted.writeUInt32LE(at + 1, 0);
        wanted.writeUInt32LE(at + 1, BLOCK - 4);
        if (portion.compare(wanted, 0, STRIDE, of * STRIDE, (of + 1) * STRIDE) !== 0) return at;
      }
    }
    return undefined;
  } finally {
    closeSync(fd);
  }
}

/** T in /proc. */
const isStopped = (pid: number): boolean => /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

describe('a worker that is killed inside of the clone of many extents', () => {
  let appliance: TestAppliance;
  let jobs: BlockJobs;
  let files: PoolFiles;
  let volumeId: string;
  const host = hostOf('node');

  beforeAll(async () => {
    appliance = await TestAppliance.start({ backend: 'fake', block: 'xfs', env: { TRIVET_RECONCILE_MS: '150' } });
    jobs = new BlockJobs(appliance);
    files = new PoolFiles(appliance.poolPath);
    volumeId = (await must(() => jobs.create('scattered', SIZE))).body.id;
    scatter(files.path('volume', volumeId));
    await must(() => jobs.host(host));
    await must(() => jobs.publish(volumeId, host));
  });
  afterAll(() => appliance?.close());

  /** Kills the worker while the kernel is at it, and shows what that leaves: a part under a temporary name. */
  const killInClone = async (): Promise<void> => {
    const worker = appliance.process('worker');
    const tmp = join(appliance.poolPath, 'tmp');
    const partial = await until('the clone has begun', () =>
      readdirSync(tmp).find(name => /\.[0-9a-f]{12}$/.test(name) && statSync(join(tmp, name)).blocks > 0),
    );
    await worker.stop('SIGKILL');
    const whole = statSync(files.path('volume', volumeId)).blocks;
    const left = statSync(join(tmp, partial)).blocks;
    expect(left).toBeGreaterThan(0);
    expect(left, 'it was killed half-way').toBeLessThan(whole);
    await recover();
  };
  /** Its lease ends with it, instead of some seconds later. */
  const recover = async (): Promise<void> => {
    await appliance.database.query(
      `UPDATE trivet.operation SET lease_until = now(), dispatched_at = now() - interval '1 minute' WHERE state = 'running'`,
    );
    await appliance.worker();
  };
  const expectWhole = async (kind: 'volume' | 'snapshot', id: string): Promise<void> => {
    expect(wrongAt(files.path(kind, id))).toBeUndefined();
    expect(wrongAt(files.path('volume', volumeId))).toBeUndefined();
    expect(await lastingMismatches(appliance)).toEqual([]);
  };

  it('leaves a temporary, and the snapshot is whole all the same', async () => {
    const answer = must(() => jobs.snapshot(volumeId, 'snapshot'));
    await killInClone();
    await expectWhole('snapshot', (await answer).body.id);
  });

  it('leaves a temporary, and the clone of a volume is whole all the same', async () => {
    const answer = must(() => jobs.cloneOfVolume('clone', volumeId, SIZE));
    await killInClone();
    await expectWhole('volume', (await answer).body.id);
  });

  it('lets the writers of a group go on, and its cut is whole all the same', async () => {
    const { body: group } = await must(() => jobs.volumeGroup('group'));
    const other = (await must(() => jobs.create('other', BLOCK))).body.id as string;
    for (const id of [volumeId, other]) await must(() => jobs.join(id, group.id));
    const answer = must(() => jobs.snapshotGroup(group.id, 'cut'));
    const [tgtd] = daemonsOf(appliance.blockFolders.tgtPath);
    await until('the writers stand still', () => isStopped(tgtd!));
    await appliance.process('worker').stop('SIGKILL');
    await until('the writers go on', () => !isStopped(tgtd!), 5_000);
    await recover();
    const { body } = await answer;
    const cut = body.snapshots.find((one: { volume_id: string }) => one.volume_id === volumeId);
    await expectWhole('snapshot', cut.id);
  });
});
