import { describe } from 'vitest';
import { describeBlockModel } from '#test/block-model/describe-model';
import { hasTgtRbd } from '#test/exporter/rbd-images';

/** Each call takes its time there. */
describe.skipIf(!hasTgtRbd())('Ceph', () => {
  describeBlockModel('rbd', Number(process.env.TRIVET_MODEL_RUNS ?? 2));
});
