import { LiveProvider } from './api/live';
import { useLogin } from './api/me';
import { ApiProblem } from './api/problem';
import { Clock } from './parts/ago';
import { Caught } from './parts/caught';
import { later } from './parts/later';
import { Loading } from './parts/page';
import { ProblemAlert } from './parts/problem-alert';
import { Toasts } from './parts/toasts';
import { Router } from './router';

/** Who is logged in does not need it. */
const Login = later(async () => (await import('./pages/login')).LoginPage);

const Failed = ({ error }: { error: unknown }) => (
  <main className="login-ground">
    <ProblemAlert error={error} />
  </main>
);

/** The login, or the page of whoever is logged in; the address is kept over a login. */
export function Root() {
  const { me, problem, loggedOut } = useLogin();
  if (me === undefined)
    return problem ? (
      <Failed error={new ApiProblem(problem)} />
    ) : (
      <main className="login-ground">
        <Loading />
      </main>
    );
  if (me === null)
    return (
      <Caught instead={error => <Failed error={error} />}>
        <Login />
      </Caught>
    );
  return (
    <Clock>
      <Toasts>
        <LiveProvider onLoggedOut={loggedOut}>
          <Router />
        </LiveProvider>
      </Toasts>
    </Clock>
  );
}
