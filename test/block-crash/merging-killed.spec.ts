import { describeKilledIndexing, ONE_OF_TWO } from '#test/block-crash/killed-indexing';

describeKilledIndexing('one of two', ONE_OF_TWO);
