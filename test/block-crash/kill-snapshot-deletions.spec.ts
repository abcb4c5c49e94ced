import { describeBlockCrashPoints } from '#test/block-crash/crash-points';

describeBlockCrashPoints('xfs', ['snapshot.delete', 'snapshot.release', 'snapshot_group.delete'], { redis: false });
