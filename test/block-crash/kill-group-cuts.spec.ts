import { describeBlockCrashPoints } from '#test/block-crash/crash-points';

describeBlockCrashPoints('xfs', ['snapshot_group.create'], { redis: true });
