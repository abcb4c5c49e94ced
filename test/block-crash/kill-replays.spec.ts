import { describeBlockCrashPoints } from '#test/block-crash/crash-points';

describeBlockCrashPoints('xfs', ['volume.replay'], { redis: false });
