import { PUBLICATION_SCENARIOS } from '#test/block-crash/publication-scenarios';
import type { BlockScenario } from '#test/block-crash/scenario';
import { SNAPSHOT_SCENARIOS } from '#test/block-crash/snapshot-scenarios';
import { VOLUME_SCENARIOS } from '#test/block-crash/volume-scenarios';

export const BLOCK_SCENARIOS: readonly BlockScenario[] = [
  ...VOLUME_SCENARIOS,
  ...PUBLICATION_SCENARIOS,
  ...SNAPSHOT_SCENARIOS,
];
