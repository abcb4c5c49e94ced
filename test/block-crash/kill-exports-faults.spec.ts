import { describeBlockCrashPoints } from '#test/block-crash/crash-points';

describeBlockCrashPoints('fake-xfs', ['volume.publish', 'volume.unpublish', 'volume.replay'], { redis: false });
