import type { Choosing } from './choosing';
import { later } from './later';

const BulkBar = later<{ choosing: Choosing }>(async () => (await import('./bulk-bar')).BulkBar);

/** What can be done to the chosen rows of a list; nothing before one is. */
export const ChosenBar = ({ choosing }: { choosing: Choosing | undefined }) =>
  choosing && choosing.chosen.size > 0 ? <BulkBar choosing={choosing} /> : null;
