import { describeRightsCrashPoints } from '#test/crash/crash-points';

describeRightsCrashPoints(['bucket.delete', 'access.grant', 'access.revoke', 'access.narrow']);
