import { handlersOf } from '#operations/definitions/define-operation';
import { BLOCK_OPERATIONS } from '#storage/block/block-operations';
import { blockHistoryOf, blockViolations } from '#test/block-crash/block-history';
import { isPassing } from '#test/block-crash/block-jobs';
import { BlockStage } from '#test/block-crash/block-stage';
import { lastingMismatches } from '#test/block-crash/block-truth';
import type { BlockScenario } from '#test/block-crash/scenario';
import { BLOCK_SCENARIOS } from '#test/block-crash/scenarios';
import {
  acceptCase,
  casesOf,
  describeKillPoints,
  inTurn,
  type KillableLeg,
  type KillCase,
} from '#test/crash/kill-points';
import { TestAppliance } from '#test/support/appliance';
import type { BlockKind } from '#test/support/block-folders';

export const blockLeg = (house: BlockKind, redis: boolean): KillableLeg<BlockStage> => ({
  scenarios: BLOCK_SCENARIOS,
  handlers: handlersOf(BLOCK_OPERATIONS, {} as never),
  background: ['volume.replay', 'snapshot.release'],
  create: () =>
    TestAppliance.create({
      backend: 'fake',
      block: house,
      redis,
      env: { TRIVET_RECONCILE_MS: '150', TRIVET_BLOCK_AUDIT_MS: '1000' },
    }),
  stage: (appliance, name) => new BlockStage(appliance, name),
  open: stage => stage.open(),
  isPassing,
  mismatches: async (appliance, stages) => {
    const wrong = await lastingMismatches(appliance);
    for (const stage of stages) wrong.push(...(await stage.wrongContents()));
    return wrong;
  },
  violations: async appliance => blockViolations(await blockHistoryOf(appliance)),
});

/** Cases of this kind that need this house, in the order of the handler's points. */
export function blockCases(house: BlockKind, kind: string): KillCase<BlockStage>[] {
  const leg = blockLeg(house, false);
  const houseOf = (scenario: BlockScenario): BlockKind => scenario.house ?? 'xfs';
  return casesOf(leg, kind).filter(({ scenario }) => houseOf(scenario) === house);
}

/** What only the background begins is accepted by no gateway. */
const isAsked = (kind: string): boolean => kind !== 'snapshot.release';

/**
 * A kill at every failpoint of these kinds that this house is for, and on the real parts at their acceptance too. Other
 * files have the other houses; plan.spec.ts sees that together they have all.
 */
export function describeBlockCrashPoints(
  house: BlockKind,
  kinds: readonly string[],
  { redis }: { redis: boolean },
): void {
  const leg = blockLeg(house, redis);
  const accepts = house === 'xfs' ? kinds.filter(isAsked).map(kind => acceptCase(leg, kind)) : [];
  describeKillPoints(
    `killed at each point of ${kinds.join(', ')} on ${house}, ${redis ? 'with' : 'without'} Redis`,
    leg,
    [...inTurn(kinds.map(kind => blockCases(house, kind))), ...accepts],
  );
}
