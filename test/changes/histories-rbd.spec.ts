import { describe } from 'vitest';
import { rbdParts } from '#test/block-backend/rbd-harness';
import { ChangesHouse } from '#test/changes/changes-house';
import { describeHistories } from '#test/changes/describe-histories';

describe.skipIf(!rbdParts())('Ceph', () => {
  describeHistories('images are cloned', {
    begin: () => ChangesHouse.onCeph(),
    // With clones, a flattened one, growth, and bases that are gone.
    seeds: [2, 7],
    steps: 12,
    // Two objects at first; what is less is not discarded at all there.
    unit: 64 * 1024,
  });
});
