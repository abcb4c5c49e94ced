import { EXIT } from '../api/api-error.js';
import { readGiven } from '../api/given-file.js';
import { readCredentials } from '../credentials.js';
import { cspDoors } from '../doors.js';
import { Home, LauncherError } from '../home.js';
import { requireReady } from '../state.js';
import type { Waiting } from './patience.js';
import { ReaderApi, type ReaderDoor } from './reader-api.js';

export interface DoorOptions {
  url?: string;
  user?: string;
  passwordFile?: string;
  caFile?: string;
}

/** Logged in while `work` runs. When the appliance is waited for, that is said on stderr, unless `say` does. */
export async function withApi<T>(
  { signal, say = line => process.stderr.write(`${line}\n`), ...options }: DoorOptions & Waiting,
  work: (api: ReaderApi) => Promise<T>,
): Promise<T> {
  const api = new ReaderApi(doorOf(options), { signal, say });
  await api.login();
  try {
    return await work(api);
  } finally {
    await api.logout().catch(() => {});
  }
}

function doorOf({ url, user, passwordFile, caFile }: DoorOptions): ReaderDoor {
  if (url !== undefined && !/^https?:\/\//.test(url))
    throw new LauncherError(`--url: expected http://host:port or https://host:port, got ${url}`, EXIT.data);
  const home = Home.find();
  const login = home === undefined ? undefined : readCredentials(home).csp;
  const username = user ?? login?.username;
  const password =
    passwordFile === undefined
      ? passwordOf(login, username)
      : readGiven(passwordFile, '--password-file').replace(/\r?\n$/, '');
  if (username === undefined || password === undefined)
    throw new LauncherError('who logs in? No user of CSP is known here: give --user and --password-file', EXIT.data);
  return {
    url: url ?? urlOfHome(home),
    username,
    password,
    ...(caFile === undefined ? {} : { ca: readGiven(caFile, '--ca-file') }),
  };
}

/** The stored password is of one user. */
const passwordOf = (login: { username: string; password: string } | undefined, username: string | undefined) =>
  login?.username === username ? login?.password : undefined;

function urlOfHome(home: Home | undefined): string {
  const doors = cspDoors(requireReady(home, 'give --url').state);
  if (!doors) throw new LauncherError('no pool of block volumes runs here; ./trivet status says why');
  return doors.url;
}
