import { Button, PasswordInput, Stack, TextInput, Title } from '@mantine/core';
import { type FormEvent, useEffect, useState } from 'react';
import { useLogin } from '../api/me';
import { adviceOf } from '../api/problem';
import { ProblemAlert } from '../parts/problem-alert';

const advice: typeof adviceOf = code =>
  code === 'unauthenticated'
    ? {
        means: 'There is no such user, or the password is another one.',
        todo: 'Check both: the user has its tenant behind the @. After several failures in a row this takes longer.',
      }
    : adviceOf(code);

export function LoginPage() {
  const { login, ended } = useLogin();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    document.title = 'Log in · Trivet';
  }, []);

  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setBusy(true);
    setError(undefined);
    try {
      await login(String(form.get('username')), String(form.get('password')));
    } catch (problem) {
      setError(problem);
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
          {error !== undefined && <ProblemAlert error={error} advice={advice} />}
          <Button type="submit" loading={busy}>
            Log in
          </Button>
        </Stack>
      </form>
    </main>
  );
}
