import { RouterProvider } from 'react-router/dom';
import { LiveProvider } from './api/live';
import { useLogin } from './api/me';
import { ApiProblem } from './api/problem';
import { LoginPage } from './pages/login';
import { Clock } from './parts/ago';
import { Loading } from './parts/page';
import { ProblemAlert } from './parts/problem-alert';
import { Toasts } from './parts/toasts';
import { router } from './router';

/** The login, or the page of whoever is logged in; the address is kept over a login. */
export function Root() {
  const { me, problem, loggedOut } = useLogin();
  if (me === undefined)
    return (
      <main className="login-ground">{problem ? <ProblemAlert error={new ApiProblem(problem)} /> : <Loading />}</main>
    );
  if (me === null) return <LoginPage />;
  return (
    <Clock>
      <Toasts>
        <LiveProvider onLoggedOut={loggedOut}>
          <RouterProvider router={router} />
        </LiveProvider>
      </Toasts>
    </Clock>
  );
}
