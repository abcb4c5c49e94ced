import { Button } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';

/** Loaded by who searches first. */
const Dialog = lazy(async () => ({ default: (await import('./search-dialog')).SearchDialog }));

/** The one search: by its button, by / where nobody types, and by Ctrl-K everywhere. */
export function Search() {
  const [opened, { open, close }] = useDisclosure(false);
  const [wanted, want] = useState(false);
  const from = useRef<Element>(null);
  const begin = (): void => {
    if (opened) return;
    from.current = document.activeElement;
    want(true);
    open();
  };
  // A dialog that is there from its first moment knows of nothing before it.
  useEffect(() => {
    if (!opened && from.current instanceof HTMLElement) from.current.focus({ preventScroll: true });
  }, [opened]);
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
