import { LauncherError } from '../home.js';

const CALL_MS = 60_000;

export interface DemoVolume {
  id: string;
  name: string;
  size: number;
  published: boolean;
  config: Record<string, unknown>;
}

export interface DemoPublication {
  lun_id: number;
  serial_number: string;
  target_names: string[];
  discovery_ips: string[];
}

/** A CSP caller as the HPE CSI driver is one: bare JSON over HTTP, a token for each call. */
export class DemoCspClient {
  #token = '';

  constructor(private readonly url: string) {}

  async login(username: string, password: string): Promise<void> {
    const reply = await this.#call<{ session_token: string; id: string }>('POST', 'tokens', {
      username,
      password,
      array_ip: '',
    });
    this.#token = reply.session_token;
    this.logout = async () => {
      await this.#call('DELETE', `tokens/${reply.id}`);
    };
  }

  /** Ends the token; without a login there is none. */
  logout: () => Promise<void> = async () => {};

  post<Reply>(path: string, body: object): Promise<Reply> {
    return this.#call('POST', path, body);
  }

  put<Reply>(path: string, body: object): Promise<Reply> {
    return this.#call('PUT', path, body);
  }

  get<Reply>(path: string): Promise<Reply> {
    return this.#call('GET', path);
  }

  async delete(path: string): Promise<void> {
    await this.#call('DELETE', path);
  }

  async #call<Reply>(method: string, path: string, body?: object): Promise<Reply> {
    const answer = await fetch(`${this.url}/containers/v1/${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(this.#token === '' ? {} : { 'x-auth-token': this.#token }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(CALL_MS),
    });
    const text = await answer.text();
    if (!answer.ok) throw new LauncherError(`${method} ${path}: ${answer.status} ${messageOf(text)}`);
    return (text === '' ? undefined : JSON.parse(text)) as Reply;
  }
}

function messageOf(text: string): string {
  try {
    const { errors } = JSON.parse(text) as { errors: { message: string }[] };
    return errors.map(({ message }) => message).join('; ');
  } catch {
    return text;
  }
}
