import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { blockHistoryOf, blockViolations } from '#test/block-crash/block-history';
import { must, type Reply } from '#test/block-crash/block-jobs';
import { BlockStage, SIZE } from '#test/block-crash/block-stage';
import { targetsOf } from '#test/block-crash/block-targets';
import { lastingMismatches } from '#test/block-crash/block-truth';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';
import { StoppedWorkers } from '#test/support/stopped-worker';

interface Stopped {
  /** Failpoint at which the worker stops itself. */
  at: string;
  prepare?(stage: BlockStage): Promise<unknown>;
  act(stage: BlockStage): Promise<Reply>;
  /** What comes after the successor's work, and must not be touched by the one who wakes up. */
  later?(stage: BlockStage, answer: Reply): Promise<unknown>;
}

const volume = async (stage: BlockStage): Promise<void> => {
  stage.volumeId = await stage.volume('a', { config: { destroy_on_delete: true } });
};
const published = async (stage: BlockStage): Promise<void> => {
  await volume(stage);
  await stage.publish();
};
const withHost = async (stage: BlockStage): Promise<void> => {
  await volume(stage);
  await must(() => stage.jobs.host(stage.host));
};
const clone = ({ jobs, name, volumeId }: BlockStage) => jobs.cloneOfVolume(`${name}-clone`, volumeId, SIZE);
const snapshot = ({ jobs, name, volumeId }: BlockStage) => jobs.snapshot(volumeId, `${name}-s`);
const publish = ({ jobs, volumeId, host }: BlockStage) => jobs.publish(volumeId, host);
const unpublish = ({ jobs, volumeId, host }: BlockStage) => jobs.unpublish(volumeId, host);
const group = async (stage: BlockStage): Promise<void> => {
  await published(stage);
  stage.groupId = (await must(() => stage.jobs.volumeGroup(`${stage.name}-g`))).body.id;
  await must(() => stage.jobs.join(stage.volumeId, stage.groupId));
};

const CASES: readonly Stopped[] = [
  { at: 'volume.clone:stage:call', prepare: volume, act: clone },
  { at: 'reflink.staging', prepare: volume, act: clone },
  { at: 'reflink.written', prepare: volume, act: clone },
  { at: 'volume.clone:commit:call', prepare: volume, act: clone },
  { at: 'reflink.link:checked', prepare: volume, act: snapshot },
  {
    at: 'reflink.link:checked',
    prepare: volume,
    act: ({ jobs, name, volumeId }) =>
      jobs.create(`${name}-clone`, SIZE, {
        clone: true,
        parent_volume_id: volumeId,
        config: { destroy_on_delete: true },
      }),
    // What its successor has made is deleted by then, and must not come back.
    later: ({ jobs }, { body }) => must(() => jobs.delete(body.id, true)),
  },
  { at: 'reflink.linked', prepare: volume, act: snapshot },
  { at: 'snapshot.create:commit:answered', prepare: published, act: snapshot },
  {
    at: 'snapshot_group.create:commit:call',
    prepare: group,
    act: ({ jobs, name, groupId }) => jobs.snapshotGroup(groupId, name),
  },
  {
    at: 'volume.expand:growImage:call',
    prepare: published,
    act: ({ jobs, volumeId }) => jobs.expand(volumeId, 2 * SIZE),
    // Whoever grew it to less must not take back what was made of it since.
    later: ({ jobs, volumeId }) => must(() => jobs.expand(volumeId, 4 * SIZE)),
  },
  {
    at: 'reflink.growing',
    prepare: published,
    act: ({ jobs, volumeId }) => jobs.expand(volumeId, 2 * SIZE),
    later: ({ jobs, volumeId }) => must(() => jobs.expand(volumeId, 4 * SIZE)),
  },
  {
    at: 'reflink.grow:checked',
    prepare: published,
    act: ({ jobs, volumeId }) => jobs.expand(volumeId, 2 * SIZE),
    later: ({ jobs, volumeId }) => must(() => jobs.expand(volumeId, 4 * SIZE)),
  },
  {
    at: 'volume.publish:applyTarget:call',
    prepare: withHost,
    act: publish,
    later: stage => must(() => unpublish(stage)),
  },
  { at: 'volume.publish:applyTarget:answered', prepare: withHost, act: publish },
  { at: 'volume.publish:end:before', prepare: withHost, act: publish },
  {
    at: 'volume.unpublish:removeTarget:call',
    prepare: published,
    act: unpublish,
    later: stage => must(() => publish(stage)),
  },
  {
    at: 'volume.delete:removeImage:call',
    prepare: published,
    act: ({ jobs, volumeId }) => jobs.delete(volumeId, true),
  },
  {
    at: 'reflink.unlink:checked',
    prepare: published,
    act: ({ jobs, volumeId }) => jobs.delete(volumeId, true),
  },
];

describe('a worker that is stopped beyond its lease changes nothing when it goes on', () => {
  let appliance: TestAppliance;
  const workers = new StoppedWorkers(() => appliance);
  beforeAll(async () => {
    appliance = await TestAppliance.create({
      backend: 'fake',
      block: 'xfs',
      env: { TRIVET_LEASE_MS: '2000', TRIVET_RECONCILE_MS: '150' },
    });
    await appliance.gateway();
  });
  afterEach(() => workers.endOthers());
  afterAll(() => appliance?.close());

  it.each(CASES.map((one, n) => ({ ...one, n })))('at $at', async ({ at, n, prepare, act, later }) => {
    const stage = new BlockStage(appliance, `case${n}`);
    await workers.running();
    await prepare?.(stage);
    const stale = await workers.stopsAt(at);
    const answer = act(stage);
    await workers.stopped(stale);
    await workers.start();
    const reply = await answer;
    expect(reply.code, reply.message).toMatch(/^(20[04]|GONE)$/);
    await later?.(stage, reply);
    await appliance.settled();
    expect(await lastingMismatches(appliance)).toEqual([]);
    const before = await state();

    await workers.goesOn(stale);
    expect(await lastingMismatches(appliance)).toEqual([]);
    expect(await state()).toEqual(before);
  });

  /** All that a stale worker could spoil. */
  const state = async () => ({
    operations: await appliance.database.query(
      `SELECT id, state, step, fence, attempt, progress, finished_at FROM trivet.operation
        WHERE (kind LIKE 'volume.%' OR kind LIKE 'snapshot%.create') AND kind <> 'volume.replay' ORDER BY seq`,
    ),
    volumes: await appliance.database.query(
      'SELECT id, state, size_bytes, tid, serial_number FROM trivet.volume ORDER BY id',
    ),
    targets: await targetsOf(appliance),
  });

  it.each(['reflink.removing', 'reflink.unlink:checked'])(
    'in the discard of a group cut, whose images its successor has made anew, at %s',
    async at => {
      const stage = new BlockStage(appliance, `discard-${at.split(/\W/)[1]}`);
      const killed = await workers.running();
      await group(stage);
      await killed.arm('snapshot_group.create:commit:answered=kill@1');
      const answer = stage.jobs.snapshotGroup(stage.groupId, stage.name);
      await killed.ended();
      // It may stop before it could say that it is ready.
      const spec = { TRIVET_FAILPOINT: `${at}=stop@1` };
      const ready = appliance.worker(spec).catch(error => error);
      await until('it has begun', () => appliance.process('worker') !== killed);
      const stale = workers.ends(appliance.process('worker'));
      await workers.stopped(stale);
      await workers.start();
      const { code, message } = await answer;
      expect(code, message).toBe('200');
      await appliance.settled();
      const images = await stage.pool.images();
      await workers.goesOn(stale);
      await ready;
      expect(await stage.pool.images()).toEqual(images);
      expect(await lastingMismatches(appliance)).toEqual([]);
    },
  );

  it('kept every promise on the way', async () => {
    expect(blockViolations(await blockHistoryOf(appliance))).toEqual([]);
  });
});
