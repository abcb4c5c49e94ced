import { Button } from '@mantine/core';
import type { ActProps } from './act-fields';
import { laterDialog, useDialog } from './later-dialog';

export { textOf, useFieldErrors } from './act-fields';

const Dialog = laterDialog(async () => (await import('./act-dialog')).ActDialog);

/** A button, its dialog, and all that a change needs: why, the name where something is lost, and how it went. */
export function Act(props: ActProps) {
  const { label, danger, primary, small, disabled } = props;
  const { opened, wanted, open, close } = useDialog();
  return (
    <>
      <Button
        size={small ? 'compact-xs' : 'xs'}
        variant={primary ? 'filled' : 'default'}
        className={danger ? 'danger-button' : undefined}
        disabled={disabled}
        onClick={open}
      >
        {label}
      </Button>
      {wanted && <Dialog {...props} opened={opened} close={close} />}
    </>
  );
}
