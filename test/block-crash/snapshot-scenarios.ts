import { must } from '#test/block-crash/block-jobs';
import { type BlockStage, expectEqual, SIZE } from '#test/block-crash/block-stage';
import { oneOf, pattern } from '#test/block-crash/pool-images';
import type { BlockScenario } from '#test/block-crash/scenario';
import { until } from '#test/support/parts';

type Part = Omit<BlockScenario, 'name' | 'covers'>;

interface SnapshotRow {
  id: string;
  state: string;
  volume_id: string;
  size_bytes: string;
}

const liveSnapshots = ({ appliance, name }: BlockStage): Promise<SnapshotRow[]> =>
  appliance.database.query<SnapshotRow>(
    "SELECT * FROM trivet.snapshot WHERE name = $1 AND state <> 'gone' ORDER BY volume_id",
    [`${name}-s`],
  );

async function expectNoSnapshot(stage: BlockStage): Promise<void> {
  expectEqual(await liveSnapshots(stage), [], 'snapshots of the name');
  const made = await stage.appliance.database.query<{ id: string }>('SELECT id FROM trivet.snapshot WHERE name = $1', [
    `${stage.name}-s`,
  ]);
  const left = (await stage.pool.images()).filter(image => made.some(({ id }) => image.path === id));
  expectEqual(left, [], 'left in the pool');
  expectEqual(await stage.wrongContents(), [], 'the other contents');
}

/** One generation of a volume: all of it is written at once, so a mixture would be of no instant. */
const GENERATIONS = ['before the call', 'while nobody worked'] as const;
const generation = (at: number): Buffer => pattern(GENERATIONS[at]!, SIZE);
const rewrite = async (stage: BlockStage, at: number): Promise<void> => {
  for (const id of [stage.volumeId, stage.otherId].filter(Boolean)) await stage.rewrite(id, GENERATIONS[at]!);
};

/** Every snapshot of the name holds one generation, the same in all, and keeps it. */
async function expectOneInstant(stage: BlockStage, volumes: number): Promise<void> {
  const rows = await liveSnapshots(stage);
  expectEqual(
    rows.map(({ state, size_bytes }) => [state, size_bytes]),
    Array.from({ length: volumes }, () => ['ready', String(SIZE)]),
    'snapshots of the name',
  );
  const generations = [generation(0), generation(1)];
  const found: number[] = [];
  for (const { id } of rows) found.push(oneOf(await stage.pool.bytes('snapshot', id), generations));
  const [first] = found;
  if (first === undefined || first < 0 || found.some(at => at !== first))
    throw new Error(`the snapshots of ${stage.name} are of the generations ${found}`);
  for (const { id } of rows)
    await stage.expectBytes('snapshot', id, stage.contents.get(id)?.bytes ?? generations[first]!);
}

/**
 * The change index keeps images of deleted snapshots that it needs; not those whose step is broken. Of these it begins
 * none from the first statement on; one that ran already would write over it at its end.
 */
async function notForTheIndex({ appliance: { database }, name }: BlockStage): Promise<void> {
  const exempt = () =>
    database.query("UPDATE trivet.snapshot SET index_state = 'broken' WHERE name = $1", [`${name}-s`]);
  await exempt();
  await until('its index is not read any more', async () => {
    const open = `SELECT FROM trivet.operation o JOIN trivet.snapshot s ON s.id = o.resource_id
                   WHERE s.name = $1 AND o.kind = 'changes.index' AND o.finished_at IS NULL`;
    return (await database.query(open, [`${name}-s`])).length === 0;
  });
  await exempt();
}

const create: Part = {
  kind: 'snapshot.create',
  prepare: async stage => {
    stage.volumeId = await stage.volume();
    await rewrite(stage, 0);
    await stage.publish();
  },
  act: ({ jobs, name, volumeId }) => jobs.snapshot(volumeId, `${name}-s`),
  meanwhile: stage => rewrite(stage, 1),
  code: '200',
  after: stage => expectOneInstant(stage, 1),
};
const remove: Part = {
  kind: 'snapshot.delete',
  prepare: async stage => {
    stage.volumeId = await stage.volume();
    stage.snapshotId = (await must(() => stage.jobs.snapshot(stage.volumeId, `${stage.name}-s`))).body.id;
    await notForTheIndex(stage);
  },
  act: ({ jobs, snapshotId }) => jobs.deleteSnapshot(snapshotId),
  code: 'GONE',
  after: expectNoSnapshot,
};

/** What the background does when the last reader of a deleted snapshot is gone. */
const release: Part = {
  kind: 'snapshot.release',
  prepare: async stage => {
    await remove.prepare(stage);
    const { database } = stage.appliance;
    await database.query(
      `INSERT INTO trivet.snapshot_pin (tenant_id, snapshot_id, holder, reason, expires_at)
       SELECT tenant_id, id, id, 'test', 'infinity' FROM trivet.snapshot WHERE id = $1`,
      [stage.snapshotId],
    );
    await must(() => stage.jobs.deleteSnapshot(stage.snapshotId));
    await stage.pool.bytes('snapshot', stage.snapshotId);
  },
  act: async stage => {
    await stage.release(stage.snapshotId);
    return { code: '200', message: '' };
  },
  code: '200',
  after: expectNoSnapshot,
};

const group = async (stage: BlockStage): Promise<void> => {
  stage.volumeId = await stage.volume('a');
  stage.otherId = await stage.volume('b');
  await rewrite(stage, 0);
  await stage.publish(stage.host, stage.volumeId);
  await stage.publish(stage.host, stage.otherId);
  stage.groupId = (await must(() => stage.jobs.volumeGroup(`${stage.name}-g`))).body.id;
  for (const id of [stage.volumeId, stage.otherId]) await must(() => stage.jobs.join(id, stage.groupId));
};
const createGroup: Part = {
  kind: 'snapshot_group.create',
  prepare: group,
  act: ({ jobs, name, groupId }) => jobs.snapshotGroup(groupId, `${name}-s`),
  meanwhile: stage => rewrite(stage, 1),
  code: '200',
  after: async stage => {
    await expectOneInstant(stage, 2);
    const { body } = await must(() => stage.jobs.get(`/snapshot_groups?volume_group_id=${stage.groupId}`));
    expectEqual(
      body.map((one: { snapshots: unknown[] }) => one.snapshots.length),
      [2],
      'groups',
    );
  },
};
const removeGroup: Part = {
  kind: 'snapshot_group.delete',
  prepare: async stage => {
    await group(stage);
    stage.snapshotGroupId = (await must(() => stage.jobs.snapshotGroup(stage.groupId, `${stage.name}-s`))).body.id;
    await notForTheIndex(stage);
  },
  act: ({ jobs, snapshotGroupId }) => jobs.deleteSnapshotGroup(snapshotGroupId),
  code: 'GONE',
  after: expectNoSnapshot,
};

export const SNAPSHOT_SCENARIOS: readonly BlockScenario[] = [
  {
    ...create,
    house: 'fake-xfs',
    name: 'a snapshot that finds no room is undone',
    covers: /:(undo:point|remove:\w+|removeImage:\w+)$/,
    alsoAt: ['snapshot.create:end:before', 'snapshot.create:end:after'],
    arm: stage => stage.fault('commit', '*', 'fail-before', 'resource_exhausted'),
    code: '507',
    after: expectNoSnapshot,
    again: '200',
  },
  {
    ...create,
    house: 'fake-xfs',
    name: 'a snapshot whose last answer is lost is tried again',
    covers: /:retry:/,
    alsoAt: ['snapshot.create:inspectImage:answered@2', 'snapshot.create:commit:point@2'],
    arm: stage => stage.fault('commit', '*', 'fail-after', 'unavailable'),
  },
  {
    ...create,
    house: 'copy',
    name: 'a published volume is copied while its writers stand still',
    covers: /:(writers|stageTogether):/,
    alsoAt: ['snapshot.create:predictCut:answered', 'snapshot.create:stage:after', 'snapshot.create:commit:answered'],
  },
  {
    ...create,
    name: 'a snapshot is taken',
    covers: /./,
    rbd: {
      always: ['rbd.cut', 'rbd.named'],
      long: [
        'rbd.written',
        'rbd.sealed',
        'rbd.noted',
        'rbd.cloned',
        'rbd.naming',
        'rbd.name:checked',
        'rbd.renaming',
        'rbd.dropped',
      ],
    },
  },

  {
    ...remove,
    house: 'fake-xfs',
    name: 'the deletion of a snapshot is tried again',
    covers: /:retry:/,
    arm: stage => stage.fault('removeImage', stage.snapshotId, 'fail-after', 'unavailable'),
  },
  {
    ...remove,
    name: 'a snapshot is deleted',
    covers: /./,
    rbd: {
      always: ['rbd.unsealed', 'rbd.uncut', 'rbd.trashed'],
      long: ['rbd.removing', 'rbd.trashing', 'rbd.reaped', 'rbd.removed'],
    },
  },

  {
    ...release,
    house: 'fake-xfs',
    name: 'the release of an image is tried again',
    covers: /:retry:/,
    arm: stage => stage.fault('removeImage', stage.snapshotId, 'fail-after', 'unavailable'),
  },
  {
    ...release,
    name: 'the image of a deleted snapshot is released',
    covers: /./,
    rbd: { long: ['rbd.unsealed', 'rbd.trashed', 'rbd.removed'] },
  },

  {
    ...createGroup,
    house: 'fake-xfs',
    name: 'a group cut that finds no room is undone',
    covers: /:(undo:point|remove:\w+)$/,
    alsoAt: [
      'snapshot_group.create:removeImage:answered@1',
      'snapshot_group.create:end:before',
      'snapshot_group.create:end:after',
    ],
    arm: stage => stage.fault('stageTogether', '*', 'fail-before', 'resource_exhausted'),
    code: '507',
    after: expectNoSnapshot,
    again: '200',
  },
  {
    ...createGroup,
    house: 'fake-xfs',
    name: 'a group cut whose first image got its name is discarded and made anew',
    covers: /:(retry:\w+|discardStages:\w+|removeImage:\w+)$/,
    alsoAt: ['snapshot_group.create:removeImage:answered@2', 'snapshot_group.create:stageTogether:answered@2'],
    arm: stage => stage.fault('commit', '*', 'fail-after', 'unavailable'),
  },
  {
    ...createGroup,
    name: 'two volumes are cut together',
    covers: /./,
    rbd: {
      always: ['rbd.cut', 'rbd.cloned@2', 'rbd.named'],
      long: [
        'rbd.written@2',
        'rbd.noted',
        'rbd.noted@2',
        'rbd.cloned',
        'rbd.written',
        'rbd.sealed',
        'rbd.named@2',
        'rbd.sealed@2',
      ],
    },
    alsoAt: ['snapshot_group.create:commit:call@2', 'snapshot_group.create:commit:answered@2'],
  },

  {
    ...removeGroup,
    house: 'fake-xfs',
    name: 'the deletion of a snapshot group is tried again',
    covers: /:retry:/,
    arm: stage => stage.fault('removeImage', '*', 'fail-after', 'unavailable'),
  },
  {
    ...removeGroup,
    name: 'a snapshot group is deleted',
    covers: /./,
    rbd: { long: ['rbd.removed', 'rbd.unsealed', 'rbd.trashed@2'] },
    alsoAt: ['snapshot_group.delete:removeImage:call@2', 'snapshot_group.delete:removeImage:answered@2'],
  },
];
