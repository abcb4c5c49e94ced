import { handlersOf } from '#operations/definitions/define-operation';
import { BLOCK_OPERATIONS } from '#storage/block/block-operations';
import { blockHistoryOf, blockViolations } from '#test/block-crash/block-history';
import { isPassing } from '#test/block-crash/block-jobs';
import { BlockStage } from '#test/block-crash/block-stage';
import { lastingMismatches } from '#test/block-crash/block-truth';
import type { BlockScenario } from '#test/block-crash/scenario';
import { BLOCK_SCENARIOS } from '#test/block-crash/scenarios';
import { acceptCase, casesOf, describeKillPoints, type KillableLeg, type KillCase } from '#test/crash/kill-points';
import { TestAppliance } from '#test/support/appliance';
import type { BlockKind } from '#test/support/block-folders';
import { until } from '#test/support/parts';

export const blockLeg = (house: BlockKind, redis: boolean): KillableLeg<BlockStage> => ({
  scenarios: BLOCK_SCENARIOS,
  handlers: handlersOf(BLOCK_OPERATIONS, {} as never),
  create: () =>
    TestAppliance.create({
      backend: 'fake',
      block: house,
      redis,
      env: { TRIVET_RECONCILE_MS: '150', TRIVET_BLOCK_AUDIT_MS: '1000' },
    }),
  begin: async ({ database, blockFolders: { ceph } }) => {
    if (!ceph) return;
    // A pool with names like ours is none that is taken.
    await until('the pool is ours', async () => (await database.query('SELECT FROM trivet.pool')).length > 0);
    await ceph.seedForeign();
  },
  quiet: ({ database }) => until('nothing goes on', async () => (await database.query(UNDER_WAY)).length === 0),
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

const UNDER_WAY = `SELECT 1 FROM trivet.operation WHERE finished_at IS NULL
  UNION ALL SELECT 1 FROM trivet.snapshot WHERE cut IS NOT NULL AND index_state = 'pending'`;

const houseOf = (scenario: BlockScenario): BlockKind => scenario.house ?? 'xfs';

/** Cases of this kind that need this house, in the order of the handler's points. */
export function blockCases(house: BlockKind, kind: string): KillCase<BlockStage>[] {
  const leg = blockLeg(house, false);
  if (house === 'rbd') return cephCases(leg, kind, Boolean(process.env.TRIVET_TEST_LONG));
  return casesOf(leg, kind).filter(({ scenario }) => houseOf(scenario) === house);
}

/** On images of Ceph, what needs no faults: where their adapter leaves another state, and in a long run at its calls too. */
export function cephCases(leg: KillableLeg<BlockStage>, kind: string, long: boolean): KillCase<BlockStage>[] {
  const own = BLOCK_SCENARIOS.filter(scenario => scenario.kind === kind).flatMap(scenario =>
    [...(scenario.rbd?.always ?? []), ...((long && scenario.rbd?.long) || [])].map(
      (at): KillCase<BlockStage> => ({ scenario, role: 'worker', at: at.includes('@') ? at : `${at}@1` }),
    ),
  );
  const isCall = ({ at, scenario }: KillCase<BlockStage>): boolean =>
    houseOf(scenario) === 'xfs' && /:(call|answered)@\d+$/.test(at);
  return long ? [...own, ...casesOf(leg, kind).filter(isCall)] : own;
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
    [...kinds.flatMap(kind => blockCases(house, kind)), ...accepts],
  );
}
