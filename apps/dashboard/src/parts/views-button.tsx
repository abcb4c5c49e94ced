import { Button } from '@mantine/core';
import { lazy, Suspense, useState } from 'react';

const ListViews = lazy(() => import('./list-views'));

/** Which columns a list shows, and the states of it that somebody wants to see again. */
export function ViewsButton({ heads }: { heads: readonly string[] }) {
  const [opened, setOpened] = useState(false);
  return (
    <div>
      <Button size="xs" variant="default" aria-expanded={opened} onClick={() => setOpened(!opened)}>
        Columns and views
      </Button>
      {opened && (
        <Suspense>
          <ListViews heads={heads} />
        </Suspense>
      )}
    </div>
  );
}
