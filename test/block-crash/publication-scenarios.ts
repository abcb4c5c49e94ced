import { hostOf, must } from '#test/block-crash/block-jobs';
import { type BlockStage, expectEqual } from '#test/block-crash/block-stage';
import type { BlockScenario } from '#test/block-crash/scenario';

type Part = Omit<BlockScenario, 'name' | 'covers'>;

async function expectServed(stage: BlockStage, initiators: readonly string[]): Promise<void> {
  const target = await stage.target();
  expectEqual(target?.initiators, initiators.length === 0 ? undefined : [...initiators].sort(), 'its initiators');
  if (target) expectEqual(target.path, stage.pool.path('volume', stage.volumeId), 'what it serves');
  expectEqual(await stage.wrongContents(), [], 'its content');
}

/** The target's id and serial number stay what they were at first. */
async function expectSameIdentity(stage: BlockStage): Promise<void> {
  const [row] = await stage.appliance.database.query<{ tid: number; serial_number: string }>(
    'SELECT tid, serial_number FROM trivet.volume WHERE id = $1',
    [stage.volumeId],
  );
  stage.identity ??= row;
  expectEqual(row, stage.identity, 'its identity');
}

const publish: Part = {
  kind: 'volume.publish',
  prepare: async stage => {
    stage.volumeId = await stage.volume();
    await must(() => stage.jobs.host(stage.host));
  },
  act: ({ jobs, volumeId, host }) => jobs.publish(volumeId, host),
  code: '200',
  after: async stage => {
    await expectServed(stage, stage.host.iqns);
    await expectSameIdentity(stage);
    await stage.expectLogin(stage.host);
  },
};
const unpublish: Part = {
  kind: 'volume.unpublish',
  prepare: async stage => {
    await publish.prepare(stage);
    await stage.publish();
    await expectSameIdentity(stage);
  },
  act: ({ jobs, volumeId, host }) => jobs.unpublish(volumeId, host),
  code: '204',
  after: stage => expectServed(stage, []),
};
const withTwoHosts = async (stage: BlockStage): Promise<void> => {
  await unpublish.prepare(stage);
  await stage.publish(stage.otherHost);
};
const changed = ({ name }: BlockStage) => hostOf(`${name}-host`, '-renamed');
const replay: Part = {
  kind: 'volume.replay',
  prepare: unpublish.prepare,
  act: stage => stage.jobs.host(changed(stage)),
  code: '200',
  after: async stage => {
    await expectServed(stage, changed(stage).iqns);
    await expectSameIdentity(stage);
    await stage.expectLogin(changed(stage));
  },
};

export const PUBLICATION_SCENARIOS: readonly BlockScenario[] = [
  {
    ...publish,
    house: 'fake-xfs',
    name: 'a publication that the exporter refuses is undone',
    covers: /:(undo:point|removeTarget:\w+)$/,
    alsoAt: ['volume.publish:ensureDaemon:call@2', 'volume.publish:end:before', 'volume.publish:end:after'],
    arm: stage => stage.fault('applyTarget', `*${stage.volumeId}`, 'fail-after', 'resource_exhausted'),
    code: '507',
    after: stage => expectServed(stage, []),
    again: '200',
  },
  {
    ...publish,
    house: 'fake-xfs',
    name: 'the publication to a second host is undone, and the first one keeps the volume',
    covers: /^$/,
    alsoAt: ['volume.publish:undo:point', 'volume.publish:applyTarget:answered@1', 'volume.publish:end:before'],
    prepare: async stage => {
      await unpublish.prepare(stage);
      await must(() => stage.jobs.host(stage.otherHost));
    },
    arm: stage => stage.fault('applyTarget', `*${stage.volumeId}`, 'fail-before', 'resource_exhausted'),
    act: ({ jobs, volumeId, otherHost }) => jobs.publish(volumeId, otherHost),
    code: '507',
    after: stage => expectServed(stage, stage.host.iqns),
    again: '200',
  },
  {
    ...publish,
    house: 'fake-xfs',
    name: 'a publication whose answer is lost is tried again',
    covers: /:retry:/,
    arm: stage => stage.fault('applyTarget', `*${stage.volumeId}`, 'fail-after', 'unavailable'),
  },
  {
    ...publish,
    name: 'a volume is published to a second host',
    covers: /:apply:/,
    alsoAt: ['volume.publish:applyTarget:answered', 'volume.publish:end:before'],
    prepare: async stage => {
      await unpublish.prepare(stage);
      await must(() => stage.jobs.host(stage.otherHost));
    },
    act: ({ jobs, volumeId, otherHost }) => jobs.publish(volumeId, otherHost),
    after: async stage => {
      await expectServed(stage, [...stage.host.iqns, ...stage.otherHost.iqns]);
      await expectSameIdentity(stage);
    },
  },
  {
    ...publish,
    name: 'a volume is published',
    covers: /./,
    rbd: { always: ['volume.publish:applyTarget:answered'] },
  },

  {
    ...unpublish,
    house: 'fake-xfs',
    name: 'the end of a publication is tried again',
    covers: /:retry:/,
    arm: stage => stage.fault('removeTarget', `*${stage.volumeId}`, 'fail-after', 'unavailable'),
  },
  {
    ...unpublish,
    name: 'one of two hosts loses the volume',
    covers: /:applyTarget:/,
    alsoAt: ['volume.unpublish:end:before', 'volume.unpublish:end:after'],
    prepare: withTwoHosts,
    after: stage => expectServed(stage, stage.otherHost.iqns),
  },
  {
    ...unpublish,
    name: 'the only host loses the volume',
    covers: /./,
    rbd: { always: ['volume.unpublish:removeTarget:answered'] },
  },

  {
    ...replay,
    house: 'fake-xfs',
    name: 'new initiators of a host are tried again',
    covers: /:retry:/,
    arm: stage => stage.fault('applyTarget', `*${stage.volumeId}`, 'fail-after', 'unavailable'),
  },
  {
    ...replay,
    house: 'fake-xfs',
    name: 'the target of a volume whose image is missed is withheld',
    covers: /:removeTarget:/,
    arm: stage => stage.fault('applyTarget', `*${stage.volumeId}`, 'fail-before', 'failed_precondition'),
    // Its image is there after all: the next look finds it, or the attempt after the crash.
    after: stage => stage.eventually(() => expectServed(stage, changed(stage).iqns)),
  },
  { ...replay, name: 'a host gets new initiators', covers: /./ },
];
