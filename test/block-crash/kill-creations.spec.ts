import { describeBlockCrashPoints } from '#test/block-crash/crash-points';

describeBlockCrashPoints('xfs', ['volume.create', 'volume.expand'], { redis: true });
