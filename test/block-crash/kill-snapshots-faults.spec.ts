import { describeBlockCrashPoints } from '#test/block-crash/crash-points';

describeBlockCrashPoints(
  'fake-xfs',
  ['snapshot.create', 'snapshot.delete', 'snapshot.release', 'snapshot_group.create', 'snapshot_group.delete'],
  { redis: true },
);
