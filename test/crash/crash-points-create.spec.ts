import { describeCrashPoints } from '#test/crash/crash-points';

describeCrashPoints(['bucket.create', 'access.grant'], { redis: true });
