import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { createContext, type FormEvent, type ReactNode, useContext, useState } from 'react';
import { problemOf } from '../api/problem';
import { useReadAgain } from '../api/read';
import { ProblemAlert } from './problem-alert';
import { useSay } from './toasts';

export interface ActProps {
  /** Of the button that opens the dialog. */
  label: string;
  /** What is asked or made. */
  title: string;
  /** What follows from it. */
  explain?: ReactNode;
  /** Of the button that does it; `label` when absent. */
  verb?: string;
  danger?: boolean;
  /** Must be typed first. */
  confirmName?: string;
  /** A field for the audit log. */
  reason?: 'required' | 'optional';
  /** Fields, each with a name. */
  children?: ReactNode;
  /** Undefined: it is done, `done` is said. Something to show (a secret) keeps the dialog open. */
  run: (form: FormData, reason: string | undefined) => Promise<ReactNode | undefined>;
  done: string;
  /** Another button, which asks something about the fields as they are and shows the answer below them. */
  ask?: { label: string; run: (form: FormData) => Promise<ReactNode> };
  primary?: boolean;
  small?: boolean;
  disabled?: boolean;
}

const Refused = createContext<readonly { pointer: string; message: string }[]>([]);

/** What the last answer had against a field of the dialog's body, by its pointer there; that against its parts, too. */
export function useFieldErrors(at: string, { exactly = false } = {}): string | undefined {
  const own = useContext(Refused).filter(
    ({ pointer }) => pointer === `/body${at}` || (!exactly && pointer.startsWith(`/body${at}/`)),
  );
  return own.length === 0 ? undefined : own.map(({ message }) => message).join('; ');
}

/** A button, its dialog, and all that a change needs: why, the name where something is lost, and how it went. */
export function Act(props: ActProps) {
  const { label, title, danger, primary, small, disabled } = props;
  const [opened, setOpened] = useState(false);
  return (
    <>
      <Button
        size={small ? 'compact-xs' : 'xs'}
        variant={primary ? 'filled' : 'default'}
        className={danger ? 'danger-button' : undefined}
        disabled={disabled}
        onClick={() => setOpened(true)}
      >
        {label}
      </Button>
      <Modal
        opened={opened}
        onClose={() => setOpened(false)}
        title={title}
        closeButtonProps={{ 'aria-label': 'Close this dialog' }}
      >
        <ActForm {...props} close={() => setOpened(false)} />
      </Modal>
    </>
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
    // What was answered was about the fields as they were.
    <form onSubmit={event => void submit(event)} onChange={() => setAnswer(undefined)}>
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

/** Trimmed; undefined when it is empty. */
export function textOf(form: FormData, name: string): string | undefined {
  const value = form.get(name);
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' ? undefined : text;
}
