import { describeBlockCrashPoints } from '#test/block-crash/crash-points';

describeBlockCrashPoints('fake-xfs', ['volume.create', 'volume.clone', 'volume.expand', 'volume.delete'], {
  redis: true,
});
