import { describeBlockCrashPoints } from '#test/block-crash/crash-points';

describeBlockCrashPoints('copy', ['snapshot.create'], { redis: false });
