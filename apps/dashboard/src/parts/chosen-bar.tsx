import { lazy, Suspense } from 'react';
import type { Choosing } from './choosing';

const BulkBar = lazy(() => import('./bulk-bar'));

/** What can be done to the chosen rows of a list; nothing before one is. */
export const ChosenBar = ({ choosing }: { choosing: Choosing | undefined }) =>
  choosing && choosing.chosen.size > 0 ? (
    <Suspense>
      <BulkBar choosing={choosing} />
    </Suspense>
  ) : null;
