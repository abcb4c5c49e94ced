import type { BlockStage } from '#test/block-crash/block-stage';
import { PUBLICATION_SCENARIOS } from '#test/block-crash/publication-scenarios';
import { SNAPSHOT_SCENARIOS } from '#test/block-crash/snapshot-scenarios';
import { VOLUME_SCENARIOS } from '#test/block-crash/volume-scenarios';
import type { Scenario } from '#test/crash/kill-points';
import type { BlockKind } from '#test/support/block-folders';

export interface BlockScenario extends Scenario<BlockStage> {
  /** What it has to run on; the real parts over XFS when absent. */
  house?: BlockKind;
}

export const BLOCK_SCENARIOS: readonly BlockScenario[] = [
  ...VOLUME_SCENARIOS,
  ...PUBLICATION_SCENARIOS,
  ...SNAPSHOT_SCENARIOS,
];
