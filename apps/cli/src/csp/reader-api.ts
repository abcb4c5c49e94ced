import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { text } from 'node:stream/consumers';
import { DEFAULT_TENANT, parseLoginName } from '#tenancy/credentials/login-name';
import { LauncherError } from '../home.js';
import { jsonIn } from '../json-in.js';
import { Patience, type Waiting } from './patience.js';

const MAX_LOGINS = 3;

/** Where the appliance is, and who asks. */
export interface ReaderDoor {
  /** `http://host:port` or `https://host:port`. */
  url: string;
  username: string;
  password: string;
  /** By its name; the usual one when absent. */
  backend?: string;
  /** PEM of whom to trust over https, beside what Node trusts. */
  ca?: string;
}

/** An answer that was no success. */
export class ApiError extends LauncherError {
  constructor(
    what: string,
    readonly status: number,
    message: string,
  ) {
    super(`${what}: ${status} ${message}`);
  }
}

/** Nothing answers, or the answer was lost: nobody knows whether the call took effect. */
class Unreachable extends LauncherError {
  constructor(url: string, why: string) {
    super(`${url} cannot be reached: ${why}`);
  }
}

/** The REST services of the appliance as backup software uses them: CSP, and sessions. Logs in again when its token ends. */
export class ReaderApi {
  #token = '';
  #tokenId = '';
  readonly #patience: Patience;
  /** The tenant that its user belongs to, as the metadata service wants it. */
  readonly namespace: string;

  /** `lastMs`: how long what cleans up after a signal waits. */
  constructor(
    private readonly door: ReaderDoor,
    waiting: Waiting = {},
    lastMs?: number,
  ) {
    this.#patience = new Patience(waiting, lastMs);
    this.namespace = parseLoginName(door.username)?.tenant ?? DEFAULT_TENANT;
  }

  async login(): Promise<void> {
    const { username, password } = this.door;
    this.#token = '';
    const reply = await this.#once<{ session_token: string; id: string }>('POST', '/containers/v1/tokens', {
      username,
      password,
      array_ip: this.door.backend ?? '',
    });
    this.#token = reply.session_token;
    this.#tokenId = reply.id;
  }

  async logout(): Promise<void> {
    if (this.#token !== '') await this.#once('DELETE', `/containers/v1/tokens/${this.#tokenId}`);
  }

  /**
   * `path` begins with a slash. Throws ApiError. While the gateway is started again the call is repeated, which is without
   * harm: what CSP makes is found by its name, and what is gone is gone. A signal ends the wait with its reason; calls
   * after it are tried for a short time.
   */
  async call<Reply>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: object): Promise<Reply> {
    let isRepeated = false;
    const wait = this.#patience.ofCall();
    for (let logins = 0; ; ) {
      try {
        return await this.#once<Reply>(method, path, body);
      } catch (error) {
        if (error instanceof ApiError && error.status === 401 && logins++ < MAX_LOGINS) await this.login();
        else if (isRepeated && method === 'DELETE' && error instanceof ApiError && error.status === 404)
          return undefined as Reply;
        else if (error instanceof Unreachable || isStopping(error)) {
          await wait(error);
          isRepeated = true;
        } else throw error;
      }
    }
  }

  csp<Reply>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: object): Promise<Reply> {
    return this.call<Reply>(method, `/containers/v1/${path}`, body);
  }

  /** As `csp`, with nothing for what is not there. */
  async find<Reply>(path: string): Promise<Reply | undefined> {
    try {
      return await this.csp<Reply>('GET', path);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  }

  async #once<Reply>(method: string, path: string, body?: object): Promise<Reply> {
    const { url, ca } = this.door;
    const isTls = url.startsWith('https:');
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const answer = await new Promise<{ status: number; text: string }>((resolve, reject) => {
      const options = {
        method,
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(sent ?? ''),
          ...(this.#token === '' ? {} : { 'x-auth-token': this.#token }),
        },
        agent: false as const,
        signal: this.#patience.limit(),
        ...(isTls && ca !== undefined ? { ca } : {}),
      };
      const call = (isTls ? requestHttps : requestHttp)(`${url.replace(/\/+$/, '')}${path}`, options, reply => {
        text(reply).then(content => resolve({ status: reply.statusCode ?? 0, text: content }), reject);
      });
      call.once('error', reject);
      call.end(sent);
    }).catch((error: Error) => {
      throw new Unreachable(url, error.message);
    });
    if (answer.status !== STOPPING) this.#patience.answered();
    const reply = answer.text === '' ? undefined : jsonIn<Reply>(answer.text);
    if (answer.status >= 200 && answer.status < 300 && (reply !== undefined || answer.text === ''))
      return reply as Reply;
    throw new ApiError(`${method} ${url}${path}`, answer.status, messageOf(answer.text));
  }
}

/** Of a gateway that ends, or that has no database yet. */
const STOPPING = 503;
const isStopping = (error: unknown): error is ApiError => error instanceof ApiError && error.status === STOPPING;

/** CSP says it in `errors`, the sessions in `detail`. */
function messageOf(content: string): string {
  const { errors, detail } = jsonIn<{ errors?: { message: string }[]; detail?: string }>(content) ?? {};
  // What is before the gateway, or in its place, says anything.
  return detail ?? errors?.map(({ message }) => message).join('; ') ?? content.replaceAll(/\s+/g, ' ').slice(0, 200);
}
