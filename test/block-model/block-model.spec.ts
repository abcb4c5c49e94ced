import { describeBlockModel } from '#test/block-model/describe-model';

describeBlockModel('xfs', Number(process.env.TRIVET_MODEL_RUNS ?? 6));
