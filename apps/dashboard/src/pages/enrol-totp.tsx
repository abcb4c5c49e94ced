import { Button, Stack, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { call } from '../api/client';
import { Copy } from '../parts/copy';
import { ProblemAlert } from '../parts/problem-alert';
import { QrCode } from '../parts/qr-code';

interface EnrolProps {
  /** Shown this once. */
  secret: string;
  uri: string;
  onProved: (recoveryCodes: string[]) => void;
}

/** What an app reads, and the field for its first code. Its script comes with the secret. */
export function EnrolTotp({ secret, uri, onProved }: EnrolProps) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const code = String(new FormData(event.currentTarget).get('code')).trim();
    setBusy(true);
    setError(undefined);
    try {
      onProved((await call('POST', '/session/factors/totp/confirm', { body: { code } })).data.recoveryCodes);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <form onSubmit={event => void submit(event)}>
      <Stack gap="sm">
        <p>Read this with an authenticator app, or type the secret into it.</p>
        <QrCode text={uri} label="QR code for an authenticator app" />
        <Copy text={secret} label="the secret" />
        <TextInput
          name="code"
          label="Code that the app shows"
          inputMode="numeric"
          autoComplete="one-time-code"
          pattern="[0-9]{6}"
          maxLength={6}
          required
          data-autofocus
        />
        {error !== undefined && <ProblemAlert error={error} />}
        <Button type="submit" size="sm" loading={busy}>
          Ask for a code from now on
        </Button>
      </Stack>
    </form>
  );
}
