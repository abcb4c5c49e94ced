import { describe } from 'vitest';
import { describeBlockBackend } from '#backends/conformance/block-backend.conformance';
import { describeBlockCopies } from '#backends/conformance/block-copies.conformance';
import { rbdHarness, rbdParts } from '#test/block-backend/rbd-harness';

const rbd = rbdParts();

describe.skipIf(!rbd)('Ceph', () => {
  const setup = () => rbdHarness(rbd!.configuration);
  describeBlockBackend('rbd', setup);
  describeBlockCopies('rbd', setup);
});
