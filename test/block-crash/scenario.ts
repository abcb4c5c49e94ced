import type { BlockStage } from '#test/block-crash/block-stage';
import type { Scenario } from '#test/crash/kill-points';
import type { BlockKind } from '#test/support/block-folders';

export interface BlockScenario extends Scenario<BlockStage> {
  /** What it has to run on; the real parts over XFS when absent. */
  house?: BlockKind;
  /** Where it dies on images of Ceph besides, at the hit that matters; the adapter's own places are not the handler's. */
  rbd?: { always?: readonly string[]; long?: readonly string[] };
}
