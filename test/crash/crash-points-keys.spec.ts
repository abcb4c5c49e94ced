import { describeKeyCrashPoints } from '#test/crash/crash-points';

describeKeyCrashPoints('fake');
describeKeyCrashPoints('fake-iam');
