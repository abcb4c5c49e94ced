import { Button, PasswordInput, Stack, TextInput, Title } from '@mantine/core';
import { type FormEvent, useEffect, useState } from 'react';
import { call } from '../api/client';
import { useLogin } from '../api/me';
import { ApiProblem, adviceOf, local } from '../api/problem';
import { goToProvider } from '../api/provider';
import { ProblemAlert } from '../parts/problem-alert';

const advice: typeof adviceOf = code =>
  code === 'unauthenticated'
    ? {
        means: 'There is no such user, or the password is another one.',
        todo: 'Check both: the user has its tenant behind the @. After several failures in a row this takes longer.',
      }
    : adviceOf(code);

const OF_PROVIDER: Readonly<Record<string, ReturnType<typeof adviceOf>>> = {
  unauthenticated: {
    means: 'Nothing has shown yet who you are; it may have taken too long, or gone through two windows.',
    todo: 'Begin the login again.',
  },
  permission_denied: {
    means: 'Your name there is right, and opens nothing here.',
    todo: 'Ask whoever runs the appliance; the audit log shows them this login.',
  },
  unavailable: {
    means: 'Only this way to log in is closed at the moment.',
    todo: 'Log in with a password, or try again in a few minutes.',
  },
};
const adviceOfProvider: typeof adviceOf = code => OF_PROVIDER[code] ?? adviceOf(code);

const OF_PASSKEY: Readonly<Record<string, ReturnType<typeof adviceOf>>> = {
  unauthenticated: {
    means: 'No user here has this passkey, it is not active, or it took too long.',
    todo: 'Begin again, or log in with your password and add the passkey under Account.',
  },
  browser_refused: {
    means: 'Nothing was sent: the browser gave no passkey.',
    todo: 'Begin again and confirm it on your device, or log in with your password.',
  },
};
const adviceOfPasskey: typeof adviceOf = code => OF_PASSKEY[code] ?? adviceOf(code);
const BY_BROWSER = local(
  'browser_refused',
  'No passkey was given',
  'it was dismissed, took too long, or is not on this device',
);

export function LoginPage() {
  const { login, loginByPasskey, ended, refused } = useLogin();
  const [busy, setBusy] = useState(false);
  const [asksCode, setAsksCode] = useState(false);
  const [error, setError] = useState<unknown>();
  const [passkeys, setPasskeys] = useState(false);
  const [ofPasskey, setOfPasskey] = useState<unknown>();
  const [provider, setProvider] = useState<string | null>(null);
  const [ofProvider, setOfProvider] = useState<unknown>(() => refused && new ApiProblem(refused));
  useEffect(() => {
    document.title = 'Log in · Trivet';
    // Without an answer there is the password.
    call('GET', '/session/passkey', {}).then(
      ({ data }) => setPasskeys(data.host !== null && 'PublicKeyCredential' in window),
      () => undefined,
    );
    call('GET', '/session/provider', {}).then(
      ({ data }) => setProvider(data.name),
      () => undefined,
    );
  }, []);

  const leave = async (): Promise<void> => {
    setOfProvider(undefined);
    try {
      await goToProvider();
    } catch (problem) {
      setOfProvider(problem);
    }
  };

  const byPasskey = async (): Promise<void> => {
    setOfPasskey(undefined);
    try {
      await loginByPasskey();
    } catch (problem) {
      setOfPasskey(problem instanceof ApiProblem ? problem : new ApiProblem(BY_BROWSER));
    }
  };

  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setBusy(true);
    setError(undefined);
    try {
      const code = String(form.get('code') ?? '').trim();
      await login(String(form.get('username')), String(form.get('password')), code === '' ? undefined : code);
    } catch (problem) {
      const needsCode = problem instanceof ApiProblem && problem.code === 'second_factor_required';
      setAsksCode(asked => asked || needsCode);
      // The first time it is a question, and no refusal.
      setError(needsCode && !asksCode ? undefined : problem);
      setBusy(false);
    }
  };

  return (
    <main className="login-ground">
      <form className="login-card" onSubmit={event => void submit(event)}>
        <Stack gap="sm">
          <Title order={1} size="h3">
            Trivet
          </Title>
          {ended && error === undefined && (
            <output className="notice notice-warn">Your login has ended. Log in again to go on where you were.</output>
          )}
          <TextInput
            name="username"
            label="User"
            description="Name and tenant, such as admin@appliance"
            autoComplete="username"
            autoCapitalize="none"
            spellCheck={false}
            required
            data-autofocus
          />
          <PasswordInput
            name="password"
            label="Password"
            autoComplete="current-password"
            visibilityToggleButtonProps={{ 'aria-label': 'Show the password' }}
            required
          />
          {asksCode && (
            <TextInput
              name="code"
              label="Code"
              description="Six digits of your authenticator app, or a recovery code"
              autoComplete="one-time-code"
              autoCapitalize="none"
              spellCheck={false}
              minLength={6}
              maxLength={40}
              required
              ref={field => field?.focus()}
            />
          )}
          {error !== undefined && <ProblemAlert error={error} advice={advice} />}
          <Button type="submit" loading={busy}>
            Log in
          </Button>
          {ofPasskey !== undefined && <ProblemAlert error={ofPasskey} advice={adviceOfPasskey} />}
          {passkeys && (
            <Button variant="default" onClick={() => void byPasskey()}>
              Log in with a passkey
            </Button>
          )}
          {ofProvider !== undefined && <ProblemAlert error={ofProvider} advice={adviceOfProvider} />}
          {provider !== null && (
            <Button variant="default" onClick={() => void leave()}>
              Log in with {provider}
            </Button>
          )}
        </Stack>
      </form>
    </main>
  );
}
