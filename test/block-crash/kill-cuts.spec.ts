import { describeBlockCrashPoints } from '#test/block-crash/crash-points';

describeBlockCrashPoints('xfs', ['snapshot.create'], { redis: true });
