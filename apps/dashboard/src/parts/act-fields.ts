import { createContext, type ReactNode, useContext } from 'react';

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

export const Refused = createContext<readonly { pointer: string; message: string }[]>([]);

/** What the last answer had against a field of the dialog's body, by its pointer there; that against its parts, too. */
export function useFieldErrors(at: string, { exactly = false } = {}): string | undefined {
  const own = useContext(Refused).filter(
    ({ pointer }) => pointer === `/body${at}` || (!exactly && pointer.startsWith(`/body${at}/`)),
  );
  return own.length === 0 ? undefined : own.map(({ message }) => message).join('; ');
}

/** Trimmed; undefined when it is empty. */
export function textOf(form: FormData, name: string): string | undefined {
  const value = form.get(name);
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' ? undefined : text;
}
