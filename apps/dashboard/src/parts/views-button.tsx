import { Button } from '@mantine/core';
import { useState } from 'react';
import { later } from './later';

const ListViews = later<{ heads: readonly string[] }>(async () => (await import('./list-views')).ListViews);

/** Which columns a list shows, and the states of it that somebody wants to see again. */
export function ViewsButton({ heads }: { heads: readonly string[] }) {
  const [opened, setOpened] = useState(false);
  return (
    <div>
      <Button size="xs" variant="default" aria-expanded={opened} onClick={() => setOpened(!opened)}>
        Columns and views
      </Button>
      {opened && <ListViews heads={heads} />}
    </div>
  );
}
