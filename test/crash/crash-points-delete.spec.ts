import { describeCrashPoints } from '#test/crash/crash-points';

describeCrashPoints(['bucket.delete', 'access.narrow'], { redis: false });
