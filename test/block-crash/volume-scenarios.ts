import { must } from '#test/block-crash/block-jobs';
import { type BlockStage, expectEqual, SIZE } from '#test/block-crash/block-stage';
import type { BlockScenario } from '#test/block-crash/scenario';

type Part = Omit<BlockScenario, 'name' | 'covers'>;

/** Exactly one volume has the name, and its image is what it says. */
async function expectOneVolume(stage: BlockStage, size: number): Promise<string> {
  const rows = await stage.rows();
  expectEqual(
    rows.map(({ state, size_bytes }) => [state, size_bytes]),
    [['ready', String(size)]],
    'volumes of the name',
  );
  return rows[0]!.id;
}

async function expectNoVolume(stage: BlockStage): Promise<void> {
  expectEqual(await stage.rows(), [], 'volumes of the name');
  const made = await stage.appliance.database.query<{ id: string }>('SELECT id FROM trivet.volume WHERE name = $1', [
    `${stage.name}-a`,
  ]);
  const left = (await stage.pool.images()).filter(image => made.some(({ id }) => image.path.endsWith(id)));
  expectEqual(left, [], 'left in the pool');
}

const create: Part = {
  kind: 'volume.create',
  prepare: async () => {},
  act: ({ jobs, name }) => jobs.create(`${name}-a`, SIZE),
  code: '200',
  after: async stage => stage.expectBytes('volume', await expectOneVolume(stage, SIZE), Buffer.alloc(SIZE)),
};

const LARGER = 2 * SIZE;
const clone: Part = {
  kind: 'volume.clone',
  prepare: async stage => {
    const source = await stage.volume('source');
    stage.snapshotId = (await must(() => stage.jobs.snapshot(source, `${stage.name}-s`))).body.id;
    stage.contents.set(stage.snapshotId, { kind: 'snapshot', bytes: stage.copyOf(source) });
    await stage.rewrite(source, 'later than the snapshot');
  },
  act: ({ jobs, name, snapshotId }) => jobs.cloneOfSnapshot(`${name}-a`, snapshotId, LARGER),
  code: '200',
  after: async stage =>
    stage.expectBytes('volume', await expectOneVolume(stage, LARGER), stage.copyOf(stage.snapshotId, LARGER)),
};

const expand: Part = {
  kind: 'volume.expand',
  prepare: async stage => {
    stage.volumeId = await stage.volume();
    await stage.publish();
  },
  act: ({ jobs, volumeId }) => jobs.expand(volumeId, LARGER),
  code: '200',
  after: async stage => {
    await expectOneVolume(stage, LARGER);
    await stage.expectBytes('volume', stage.volumeId, stage.copyOf(stage.volumeId, LARGER));
    expectEqual((await stage.target())?.initiators, stage.host.iqns, 'initiators of the target');
    await stage.expectCapacity(LARGER);
  },
};

const withTarget = async (stage: BlockStage, more: Record<string, unknown>): Promise<void> => {
  stage.volumeId = await stage.volume('a', more);
  await stage.publish();
  await must(() => stage.jobs.unpublish(stage.volumeId, stage.host));
};
const FOR_GOOD = { config: { destroy_on_delete: true } };
const remove: Part = {
  kind: 'volume.delete',
  prepare: async stage => {
    await withTarget(stage, FOR_GOOD);
    stage.forget(stage.volumeId);
  },
  act: ({ jobs, volumeId }) => jobs.delete(volumeId),
  code: 'GONE',
  after: async stage => {
    await expectNoVolume(stage);
    expectEqual(await stage.target(), undefined, 'its target');
  },
};
const removeByForce: Part = {
  ...remove,
  prepare: async stage => {
    stage.volumeId = await stage.volume('a', FOR_GOOD);
    stage.forget(stage.volumeId);
    await stage.publish();
    for (const name of ['one', 'two']) await must(() => stage.jobs.snapshot(stage.volumeId, `${stage.name}-${name}`));
  },
  act: ({ jobs, volumeId }) => jobs.delete(volumeId, true),
};
const removeToBin: Part = {
  ...remove,
  prepare: stage => withTarget(stage, {}),
  after: async stage => {
    expectEqual(
      (await stage.rows()).map(({ state }) => state),
      ['binned'],
      'volumes of the name',
    );
    expectEqual(await stage.wrongContents(), [], 'in the recycle bin');
    expectEqual(await stage.target(), undefined, 'its target');
  },
};

/** Per kind: the special ways first, the plain one last, which covers whatever the others do not. */
export const VOLUME_SCENARIOS: readonly BlockScenario[] = [
  {
    ...create,
    house: 'fake-xfs',
    name: 'a creation that finds no room is undone',
    covers: /:(undo:point|remove:\w+|removeImage:\w+)$/,
    alsoAt: [
      'volume.create:discardStages:call@2',
      'volume.create:discardStages:answered@2',
      'volume.create:end:before',
      'volume.create:end:after',
    ],
    arm: stage => stage.fault('stage', '*', 'fail-before', 'resource_exhausted'),
    code: '507',
    after: expectNoVolume,
    // The name is free again: the next call begins a new life.
    again: '200',
  },
  {
    ...create,
    house: 'fake-xfs',
    name: 'a creation whose last answer is lost is tried again',
    covers: /:retry:/,
    alsoAt: ['volume.create:inspectImage:answered@2'],
    arm: stage => stage.fault('commit', '*', 'fail-after', 'unavailable'),
  },
  {
    ...create,
    name: 'a thick volume is created in a folder',
    covers: /:stage:/,
    rbd: { long: ['rbd.created'] },
    act: ({ jobs, name }) => jobs.create(`${name}-a`, SIZE, { config: { thick: true, folder: 'team/db' } }),
    after: async stage => {
      const id = await expectOneVolume(stage, SIZE);
      await stage.expectBytes('volume', id, Buffer.alloc(SIZE), 'team/db');
    },
  },
  {
    ...create,
    name: 'a volume is created',
    covers: /./,
    rbd: {
      always: ['rbd.name:checked', 'rbd.named'],
      long: ['rbd.staging', 'rbd.noted', 'rbd.written', 'rbd.naming', 'rbd.dropped'],
    },
  },

  {
    ...clone,
    house: 'fake-xfs',
    name: 'a clone that finds no room is undone',
    covers: /:(undo:point|remove:\w+|removeImage:\w+)$/,
    alsoAt: ['volume.clone:end:before', 'volume.clone:end:after'],
    arm: stage => stage.fault('commit', '*', 'fail-before', 'resource_exhausted'),
    code: '507',
    after: expectNoVolume,
    again: '200',
  },
  {
    ...clone,
    house: 'fake-xfs',
    name: 'a clone whose answer is lost is tried again',
    covers: /:retry:/,
    arm: stage => stage.fault('stage', '*', 'fail-after', 'unavailable'),
  },
  {
    ...clone,
    name: 'a published volume is cloned',
    covers: /:stage:/,
    rbd: { always: ['rbd.cut', 'rbd.written'], long: ['rbd.noted', 'rbd.cloned', 'rbd.named', 'rbd.dropped'] },
    prepare: async stage => {
      stage.volumeId = await stage.volume('source');
      await stage.publish();
    },
    act: ({ jobs, name, volumeId }) => jobs.cloneOfVolume(`${name}-a`, volumeId, SIZE),
    after: async stage => stage.expectBytes('volume', await expectOneVolume(stage, SIZE), stage.copyOf(stage.volumeId)),
  },
  {
    ...clone,
    name: 'a snapshot is cloned into a larger volume',
    covers: /./,
    rbd: { long: ['rbd.cloned', 'rbd.naming'] },
  },

  {
    ...expand,
    house: 'fake-xfs',
    name: 'an expansion that finds no room changes nothing',
    covers: /:undo:point$/,
    alsoAt: ['volume.expand:end:before', 'volume.expand:end:after'],
    arm: stage => stage.fault('growImage', '*', 'fail-before', 'resource_exhausted'),
    code: '507',
    after: async stage => {
      await expectOneVolume(stage, SIZE);
      expectEqual(await stage.wrongContents(), [], 'its content');
    },
    again: '200',
    finish: async stage => expand.after(stage),
  },
  {
    ...expand,
    house: 'fake-xfs',
    name: 'an expansion whose answer is lost is tried again',
    covers: /:retry:/,
    alsoAt: ['volume.expand:growImage:answered@2'],
    arm: stage => stage.fault('resizeTarget', '*', 'fail-after', 'unavailable'),
  },
  {
    ...expand,
    name: 'a published volume is expanded',
    covers: /./,
    rbd: { always: ['rbd.grown'], long: ['rbd.growing'] },
  },

  {
    ...remove,
    house: 'fake-xfs',
    name: 'a deletion is tried again',
    covers: /:retry:/,
    alsoAt: ['volume.delete:removeTarget:call@2', 'volume.delete:removeImage:answered@1'],
    arm: stage => stage.fault('removeImage', stage.volumeId, 'fail-after', 'unavailable'),
  },
  {
    ...removeByForce,
    house: 'fake-xfs',
    name: 'a deletion that the store refuses waits for a person',
    covers: /^$/,
    alsoAt: ['volume.delete:retry:after'],
    arm: stage => stage.fault('removeImage', stage.volumeId, 'fail-before', 'failed_precondition'),
    code: '409',
    after: async stage =>
      expectEqual(
        (await stage.rows()).map(({ state }) => state),
        ['deleting'],
        'the volume',
      ),
    again: '409',
    finish: async stage => {
      await stage.appliance.database.query(
        "UPDATE trivet.operation SET state = 'pending', next_run_at = now() WHERE state = 'needs_attention'",
      );
      await must(() => stage.jobs.delete(stage.volumeId, true));
      await expectNoVolume(stage);
    },
  },
  {
    ...removeToBin,
    name: 'a volume is put into the recycle bin',
    covers: /:image:/,
    alsoAt: [
      'volume.delete:claimed',
      'volume.delete:begin:point',
      'volume.delete:unexport:after',
      'volume.delete:snapshots:after',
      'volume.delete:end:before',
      'volume.delete:end:after',
    ],
  },
  {
    ...removeByForce,
    name: 'a published volume is deleted by force with its snapshots',
    covers: /:(unexport|removeTarget|snapshots|removeSnapshot):/,
    rbd: { long: ['rbd.trashed', 'rbd.unsealed', 'rbd.uncut', 'rbd.removed@2', 'rbd.trashed@3'] },
    alsoAt: [
      'volume.delete:removeSnapshot:call@2',
      'volume.delete:removeSnapshot:answered@2',
      'volume.delete:removeImage:answered',
      'volume.delete:end:before',
    ],
  },
  {
    ...remove,
    name: 'a volume is deleted for good',
    covers: /./,
    rbd: { always: ['rbd.trashing', 'rbd.trashed', 'rbd.reaped'], long: ['rbd.removing', 'rbd.removed'] },
  },
];
