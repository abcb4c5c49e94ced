import { describe } from 'vitest';
import { describeBlockCrashPoints } from '#test/block-crash/crash-points';
import { hasTgtRbd } from '#test/exporter/rbd-images';

describe.skipIf(!hasTgtRbd())('Ceph', () => {
  describeBlockCrashPoints(
    'rbd',
    ['snapshot.create', 'snapshot.delete', 'snapshot.release', 'snapshot_group.create', 'snapshot_group.delete'],
    { redis: false },
  );
});
