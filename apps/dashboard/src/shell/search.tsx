import { Button } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { lazy, Suspense, useState } from 'react';

/** Loaded by who searches first. */
const Dialog = lazy(async () => ({ default: (await import('./search-dialog')).SearchDialog }));

/** The one search: by its button, by / where nobody types, and by Ctrl-K everywhere. */
export function Search() {
  const [opened, { open, close }] = useDisclosure(false);
  const [wanted, want] = useState(false);
  const begin = (): void => {
    want(true);
    open();
  };
  useHotkeys([['/', begin]]);
  useHotkeys([['mod+K', begin]], []);
  return (
    <>
      <Button variant="default" size="compact-sm" onClick={begin} aria-keyshortcuts="/ Control+K">
        Search
        <span className="hide-narrow shortcut" aria-hidden="true">
          /
        </span>
      </Button>
      {wanted && (
        <Suspense>
          <Dialog opened={opened} onClose={close} />
        </Suspense>
      )}
    </>
  );
}
