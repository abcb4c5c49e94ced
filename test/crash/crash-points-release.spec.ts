import { describeCrashPoints } from '#test/crash/crash-points';

describeCrashPoints(['bucket.release', 'access.revoke'], { redis: true });
