import { useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from 'react';
import type { Problem } from '#admin/contract/common';
import type { Role } from '#admin/contract/route';
import type { Me } from '#admin/contract/session';
import { call, setCsrf, whenEnded } from './client';
import { logInByPasskey } from './passkey';
import { ApiProblem, problemOf } from './problem';
import { takeAnswer } from './provider';

interface Login {
  /** undefined: not known yet; null: nobody is logged in. */
  me: Me | null | undefined;
  /** It was logged in, and is no more. */
  ended: boolean;
  problem: Problem | undefined;
  /** Of the login by the provider that this page came back from. */
  refused: Problem | undefined;
  /** Without a code that is asked for: ApiProblem `second_factor_required`. */
  login(username: string, password: string, code?: string): Promise<void>;
  /** Throws what the browser says when somebody refuses there. */
  loginByPasskey(): Promise<void>;
  logout(): Promise<void>;
  loggedOut(): void;
}

const LoginContext = createContext<Login | undefined>(undefined);

export function useLogin(): Login {
  const login = useContext(LoginContext);
  if (!login) throw new Error('useLogin outside of LoginProvider');
  return login;
}

/** Who is logged in; only below a page that somebody is logged in to. */
export function useMe(): Me {
  const { me } = useLogin();
  if (!me) throw new Error('nobody is logged in');
  return me;
}

const RANK: Readonly<Record<Role, number>> = { viewer: 0, operator: 1, admin: 2 };

/** The API decides; the page offers what it would allow. */
export function useMay(): (role: Role, scope?: 'appliance') => boolean {
  const me = useMe();
  return (role, scope) => RANK[me.role] >= RANK[role] && (scope !== 'appliance' || me.appliance);
}

export function LoginProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [me, setMe] = useState<Me | null>();
  const [ended, setEnded] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [refused, setRefused] = useState<Problem>();

  const become = useCallback(
    (who: Me | null) => {
      setCsrf(who?.csrf ?? null);
      setProblem(undefined);
      if (who) setRefused(undefined);
      // What one user has read is not for the next one.
      client.clear();
      setMe(who);
    },
    [client],
  );

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = (): void => {
      call('GET', '/session', {}).then(
        ({ data }) => become(data),
        error => {
          if (error instanceof ApiProblem && error.code === 'unauthenticated') return become(null);
          setProblem(problemOf(error));
          timer = setTimeout(ask, 3_000);
        },
      );
    };
    const answer = takeAnswer();
    if (answer === undefined) ask();
    else
      call('POST', '/session/provider/login', { body: { answer } }).then(
        ({ data }) => become(data),
        error => {
          setRefused(problemOf(error));
          ask();
        },
      );
    return () => clearTimeout(timer);
  }, [become]);

  const loggedOut = useCallback(() => {
    setEnded(true);
    become(null);
  }, [become]);

  useEffect(() => {
    whenEnded(loggedOut);
    return () => whenEnded(() => {});
  }, [loggedOut]);

  const value = useMemo<Login>(
    () => ({
      me,
      ended,
      problem,
      refused,
      loggedOut,
      login: async (username, password, code) => {
        const { data } = await call('POST', '/session', { body: { username, password, code } });
        setEnded(false);
        become(data);
      },
      loginByPasskey: async () => {
        const { data } = await logInByPasskey();
        setEnded(false);
        become(data);
      },
      logout: async () => {
        await call('DELETE', '/session', {}).catch(() => undefined);
        setEnded(false);
        become(null);
      },
    }),
    [me, ended, problem, refused, loggedOut, become],
  );
  return <LoginContext value={value}>{children}</LoginContext>;
}
