import { describe } from 'vitest';
import { describeBlockCrashPoints } from '#test/block-crash/crash-points';
import { hasTgtRbd } from '#test/exporter/rbd-images';

describe.skipIf(!hasTgtRbd())('Ceph', () => {
  describeBlockCrashPoints(
    'rbd',
    ['volume.create', 'volume.clone', 'volume.expand', 'volume.delete', 'volume.publish', 'volume.unpublish'],
    { redis: false },
  );
});
