import { Button, Modal, Text } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';

/** Loaded by who searches first. */
const Dialog = lazy(() =>
  import('./search-dialog').then(
    ({ SearchDialog }) => ({ default: SearchDialog }),
    () => ({ default: NotLoaded }),
  ),
);

/** A gateway of another release has other files. */
function NotLoaded({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <Modal opened={opened} onClose={onClose} title="Search" closeButtonProps={{ 'aria-label': 'Close' }}>
      <Text mb="md">The search did not load: the gateway was replaced by another release, or is away.</Text>
      <Button onClick={() => window.location.reload()}>Load the page anew</Button>
    </Modal>
  );
}

/** The one search: by its button, by / where nobody types, and by Ctrl-K everywhere. */
export function Search() {
  const [opened, { open, close }] = useDisclosure(false);
  const [wanted, want] = useState(false);
  const from = useRef<Element>(null);
  const begin = (): void => {
    // Two dialogs would close by one Escape, and one might open beneath the other.
    if (document.querySelector('[role="dialog"]')) return;
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
