import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { type FormEvent, type ReactNode, useState } from 'react';
import { problemOf } from '../api/problem';
import { useReadAgain } from '../api/read';
import { type ActProps, Refused, textOf } from './act-fields';
import { ProblemAlert } from './problem-alert';
import { useSay } from './toasts';

export function ActDialog({ opened, close, ...props }: ActProps & { opened: boolean; close: () => void }) {
  return (
    <Modal
      opened={opened}
      onClose={close}
      returnFocus={false}
      title={props.title}
      closeButtonProps={{ 'aria-label': 'Close this dialog' }}
    >
      <ActForm {...props} close={close} />
    </Modal>
  );
}

interface ShownProps {
  opened: boolean;
  close: () => void;
  title: string;
  children: ReactNode;
}

/** Something to read, beside the row that made it. */
export function ShownDialog({ opened, close, title, children }: ShownProps) {
  return (
    <Modal opened={opened} onClose={close} title={title} closeButtonProps={{ 'aria-label': 'Close this dialog' }}>
      {children}
      <Group justify="flex-end">
        <Button size="sm" onClick={close}>
          Done
        </Button>
      </Group>
    </Modal>
  );
}

function ActForm({ close, ...props }: ActProps & { close: () => void }) {
  const { label, explain, verb, danger, confirmName, reason, children, run, done, ask } = props;
  const say = useSay();
  const readAgain = useReadAgain();
  const [typed, setTyped] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [shown, setShown] = useState<ReactNode>();
  const [asking, setAsking] = useState(false);
  const [answer, setAnswer] = useState<ReactNode>();
  const leave = (): void => {
    close();
    // Not before: what refused it may be that its row is gone, and the words about that with it.
    if (error !== undefined) void readAgain();
  };

  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setBusy(true);
    setError(undefined);
    try {
      const result = await run(form, textOf(form, 'reason'));
      say(done);
      void readAgain();
      if (result === undefined) close();
      else setShown(result);
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };

  const askNow = async (fields: HTMLFormElement): Promise<void> => {
    if (!ask || !fields.reportValidity()) return;
    setAsking(true);
    setError(undefined);
    setAnswer(undefined);
    try {
      setAnswer(await ask.run(new FormData(fields)));
    } catch (problem) {
      setError(problem);
    } finally {
      setAsking(false);
    }
  };

  if (shown !== undefined)
    return (
      <Stack gap="sm">
        {shown}
        <Group justify="flex-end">
          <Button size="sm" onClick={close} data-autofocus>
            Done
          </Button>
        </Group>
      </Stack>
    );
  return (
    // What was answered was about the fields as they were. A form's `change` comes when a field is left, `input` with each letter.
    <form
      onSubmit={event => void submit(event)}
      onInput={() => setAnswer(undefined)}
      onChange={() => setAnswer(undefined)}
    >
      <Stack gap="sm">
        {explain && <Text size="sm">{explain}</Text>}
        <Refused value={error === undefined ? [] : (problemOf(error).errors ?? [])}>{children}</Refused>
        {reason && (
          <TextInput
            name="reason"
            label="Reason"
            description="Kept in the audit log"
            required={reason === 'required'}
            maxLength={500}
            autoComplete="off"
          />
        )}
        {confirmName !== undefined && (
          <TextInput
            label={`Type ${confirmName} to confirm`}
            value={typed}
            onChange={event => setTyped(event.currentTarget.value)}
            autoComplete="off"
            spellCheck={false}
            required
          />
        )}
        {error !== undefined && <ProblemAlert error={error} />}
        {ask && <div role="status">{answer}</div>}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" size="sm" onClick={leave}>
            Cancel
          </Button>
          {ask && (
            <Button
              variant="default"
              size="sm"
              loading={asking}
              disabled={busy}
              onClick={event => void askNow(event.currentTarget.form!)}
            >
              {ask.label}
            </Button>
          )}
          <Button
            type="submit"
            size="sm"
            loading={busy}
            className={danger ? 'danger-button-filled' : undefined}
            disabled={confirmName !== undefined && typed !== confirmName}
          >
            {verb ?? label}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
