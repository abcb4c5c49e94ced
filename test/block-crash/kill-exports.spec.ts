import { describeBlockCrashPoints } from '#test/block-crash/crash-points';

describeBlockCrashPoints('xfs', ['volume.publish', 'volume.unpublish'], { redis: true });
