import type { BlockStage } from '#test/block-crash/block-stage';
import type { Scenario } from '#test/crash/kill-points';
import type { BlockKind } from '#test/support/block-folders';

export interface BlockScenario extends Scenario<BlockStage> {
  /** What it has to run on; the real parts over XFS when absent. */
  house?: BlockKind;
}
