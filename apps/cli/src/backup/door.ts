import { existsSync, readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { EXIT } from '../api/api-error.js';
import { readCredentials } from '../credentials.js';
import { cspDoors } from '../doors.js';
import { Home, LauncherError } from '../home.js';
import { livingState } from '../state.js';
import type { Waiting } from './patience.js';
import { ReaderApi, type ReaderDoor } from './reader-api.js';

export interface DoorOptions {
  url?: string;
  user?: string;
  passwordFile?: string;
  caFile?: string;
}

export const withDoor = (command: Command): Command =>
  command
    .option('--url <address>', 'http(s) address of the appliance; else the one that runs here')
    .option('--user <name>', 'who logs in over CSP: name, or name@tenant')
    .addOption(new Option('--password-file <file>', 'file with the password'))
    .option('--ca-file <file>', 'PEM of whom to trust over https');

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
  const password = passwordFile === undefined ? passwordOf(login, username) : readPassword(passwordFile);
  if (username === undefined || password === undefined)
    throw new LauncherError('who logs in? Give --user and --password-file', EXIT.data);
  return { url: url ?? urlOfHome(home), username, password, caFile };
}

/** The stored password is of one user. */
const passwordOf = (login: { username: string; password: string } | undefined, username: string | undefined) =>
  login?.username === username ? login?.password : undefined;

function readPassword(file: string): string {
  if (!existsSync(file)) throw new LauncherError(`--password-file: there is no ${file}`, EXIT.data);
  return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
}

function urlOfHome(home: Home | undefined): string {
  const state = home && livingState(home);
  if (state?.state !== 'ready') throw new LauncherError('nothing runs here: ./trivet up --detach, or give --url');
  const doors = cspDoors(state);
  if (!doors) throw new LauncherError('no pool of block volumes runs here; ./trivet status says why');
  return doors.url;
}
