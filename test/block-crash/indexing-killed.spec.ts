import { A_LIST, A_STEP, describeKilledIndexing } from '#test/block-crash/killed-indexing';

describeKilledIndexing('a step', A_STEP);
describeKilledIndexing('a list', A_LIST);
