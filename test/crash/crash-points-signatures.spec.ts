import { describeKeyCrashPoints } from '#test/crash/crash-points';

describeKeyCrashPoints('fake-signing');
