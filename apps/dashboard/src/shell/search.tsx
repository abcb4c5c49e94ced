import { Button } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { laterDialog, useDialog } from '../parts/later-dialog';

const Dialog = laterDialog(async () => (await import('./search-dialog')).SearchDialog);

/** The one search: by its button, by / where nobody types, and by Ctrl-K everywhere. */
export function Search() {
  const { opened, wanted, open, close } = useDialog();
  const begin = (): void => {
    // Two dialogs would close by one Escape, and one might open beneath the other.
    if (!document.querySelector('[role="dialog"]')) open();
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
      {wanted && <Dialog opened={opened} close={close} />}
    </>
  );
}
