import { describe } from 'vitest';
import { describeBlockBackend } from '#backends/conformance/block-backend.conformance';
import { describeBlockCopies } from '#backends/conformance/block-copies.conformance';
import { describeExtentSource } from '#backends/conformance/extent-source.conformance';
import { OBJECT_BYTES, rbdHarness, rbdParts } from '#test/block-backend/rbd-harness';

const rbd = rbdParts();

describe.skipIf(!rbd)('Ceph', () => {
  const setup = () => rbdHarness(rbd!.configuration);
  describeBlockBackend('rbd', setup);
  describeBlockCopies('rbd', setup);
  describeExtentSource('rbd', setup, OBJECT_BYTES);
});
