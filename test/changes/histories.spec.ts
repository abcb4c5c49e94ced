import { ChangesHouse } from '#test/changes/changes-house';
import { describeHistories } from '#test/changes/describe-histories';
import { parts } from '#test/support/parts';

describeHistories('blocks are shared', {
  begin: () => ChangesHouse.create({ under: parts().xfs!.path }),
  seeds: [0, 1, 2, 3],
  steps: 20,
});
describeHistories('data are copied', { begin: () => ChangesHouse.create(), seeds: [0, 1], steps: 20 });
