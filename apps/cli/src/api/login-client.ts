import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import type { RouteContract } from '#admin/contract/route';
import { sessionRoutes } from '#admin/contract/session';
import { EXIT_CONFIG } from '#platform/config/config';
import { LauncherError } from '../home.js';
import { ApiClient } from './api-client.js';
import { ApiError, EXIT } from './api-error.js';
import { askTerminal } from './confirm.js';
import { readGiven } from './given-file.js';

/** As the page does it, with a password: for whoever has no token yet. */
export class LoginClient extends ApiClient {
  private cookie: string | undefined;
  private csrf: string | undefined;

  constructor(url: string) {
    super({ url, token: '' });
  }

  async within<T>(username: string, password: string, work: (api: ApiClient) => Promise<T>): Promise<T> {
    const { reply, cookie } = await this.open(username, password);
    if (cookie === undefined || reply.csrf === null)
      throw new LauncherError(`${this.url} gives no session`, EXIT.unavailable);
    this.cookie = cookie;
    this.csrf = reply.csrf;
    try {
      return await work(this);
    } finally {
      await this.call(sessionRoutes.logout);
    }
  }

  /** The right password of somebody with a second factor is answered by a question for the code. */
  private async open(username: string, password: string) {
    try {
      return await this.call(sessionRoutes.login, { body: { username, password } });
    } catch (error) {
      if (!(error instanceof ApiError) || error.problem?.code !== 'second_factor_required') throw error;
      if (!process.stdin.isTTY)
        throw new LauncherError(
          `${username} has a second factor, and no terminal is here to ask for its code: make the token at the page`,
          EXIT.rights,
        );
      const code = await askTerminal(`Code of ${username} (six digits, or a recovery code): `);
      return this.call(sessionRoutes.login, { body: { username, password, code } });
    }
  }

  protected override credentials(route: RouteContract): Record<string, string> {
    if (this.cookie === undefined || this.csrf === undefined) return {};
    return { cookie: this.cookie, ...(route.method === 'GET' ? {} : { 'x-csrf-token': this.csrf }) };
  }
}

/** From a file or standard input; else asked for at the terminal, which does not show it. */
export async function askPassword(username: string, file: string | undefined): Promise<string> {
  if (file !== undefined) return readGiven(file, '--password-file', EXIT_CONFIG).trim();
  if (!process.stdin.isTTY)
    throw new LauncherError(
      'no terminal to ask for the password: give --password-file (- is standard input)',
      EXIT.data,
    );
  process.stderr.write(`Password of ${username}: `);
  const hidden = new Writable({ write: (_chunk, _encoding, done) => done() });
  const asking = createInterface({ input: process.stdin, output: hidden, terminal: true });
  try {
    return await new Promise<string>((resolve, reject) => {
      asking.question('', resolve);
      asking.once('SIGINT', () => reject(new LauncherError('nothing was done', 130)));
    });
  } finally {
    asking.close();
    process.stderr.write('\n');
  }
}
