import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Answer, Ask, HttpClient } from '#test/csp/client';
import type { CspTarget } from '#test/csp/target';

/** bare: as the driver speaks, without a context path. data: as the specification does, below the context path. */
export const DIALECTS = ['bare', 'data'] as const;
export type Dialect = (typeof DIALECTS)[number];

export const MIB = 1024 * 1024;

/** What the groups of cases share. Everything is named by a number, so that the suite can run beside others. */
export class Context {
  private counter = 0;
  /** Tells runs on one appliance apart. */
  private readonly run = Date.now().toString(36);
  private readonly tokens = new Map<Dialect, Promise<string>>();

  constructor(private readonly open: () => { target: CspTarget; http: HttpClient }) {}

  get target(): CspTarget {
    return this.open().target;
  }

  get http(): HttpClient {
    return this.open().http;
  }

  name(what: string): string {
    return `${what}-${this.run}-${this.counter++}`;
  }

  prefix(dialect: Dialect): string {
    return dialect === 'bare' ? '/containers/v1' : `/${this.target.contextPath}/containers/v1`;
  }

  wrap = (dialect: Dialect, body: unknown): unknown => (dialect === 'data' ? { data: body } : body);

  /** A login that all cases of a dialect share. */
  token(dialect: Dialect): Promise<string> {
    let token = this.tokens.get(dialect);
    if (!token) {
      token = this.login(dialect).then(({ body }) => (dialect === 'data' ? body.data : body).session_token as string);
      this.tokens.set(dialect, token);
    }
    return token;
  }

  login(dialect: Dialect, changes: object = {}): Promise<Answer> {
    const { username, password, arrayIp } = this.target;
    const body = this.wrap(dialect, { username, password, array_ip: arrayIp, ...changes });
    return this.http.ask('POST', `${this.prefix(dialect)}/tokens`, { body });
  }

  /** As it comes: `path` begins after the prefix. */
  async ask(dialect: Dialect, method: string, path: string, ask: Ask = {}): Promise<Answer> {
    const headers = { 'x-auth-token': await this.token(dialect), ...ask.headers };
    return this.http.ask(method, `${this.prefix(dialect)}${path}`, { ...ask, headers });
  }

  /** Expects success and gives what is inside the envelope; nothing for 204. */
  // biome-ignore lint/suspicious/noExplicitAny: replies are checked member by member
  async ok(dialect: Dialect, method: string, path: string, body?: object, status = expectedOf(method)): Promise<any> {
    const wrapped = body && this.wrap(dialect, body);
    const answer = await this.ask(dialect, method, path, { body: wrapped });
    expect({ status: answer.status, text: answer.status === status ? '' : answer.text }).toEqual({ status, text: '' });
    if (status === 204) {
      expect(answer.text).toBe('');
      return undefined;
    }
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
    if (dialect === 'bare') {
      if (!Array.isArray(answer.body)) expect(answer.body).not.toHaveProperty('data');
      return answer.body;
    }
    expect(Object.keys(answer.body)).toEqual(['data']);
    return answer.body.data;
  }

  /** Expects an errors body with one entry of that status whose message is about something. */
  async refuse(
    dialect: Dialect,
    method: string,
    path: string,
    body: object | undefined,
    status: number,
    about: RegExp | string = /./,
  ): Promise<Answer> {
    const answer = await this.ask(dialect, method, path, { body: body && this.wrap(dialect, body) });
    expectRefusal(answer, status, about);
    return answer;
  }

  // --- what many cases begin with

  // biome-ignore lint/suspicious/noExplicitAny: see above
  volume(dialect: Dialect, changes: object = {}): Promise<any> {
    return this.ok(dialect, 'POST', '/volumes', { name: this.name('pvc'), size: MIB, config: {}, ...changes });
  }

  // biome-ignore lint/suspicious/noExplicitAny: see above
  snapshot(dialect: Dialect, volumeId: string, changes: object = {}): Promise<any> {
    return this.ok(dialect, 'POST', '/snapshots', { name: this.name('snapshot'), volume_id: volumeId, ...changes });
  }

  hostBody(changes: object = {}) {
    return {
      name: this.name('node'),
      uuid: randomUUID() as string,
      iqns: [`${this.target.initiator}-${this.run}-${this.counter++}`],
      networks: ['192.0.2.2/24'],
      ...changes,
    };
  }

  // biome-ignore lint/suspicious/noExplicitAny: see above
  host(dialect: Dialect, changes: object = {}): Promise<any> {
    return this.ok(dialect, 'POST', '/hosts', this.hostBody(changes));
  }
}

/** Deletions have nothing to say. */
const expectedOf = (method: string): number => (method === 'DELETE' ? 204 : 200);

export const CODES: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  409: 'Conflict',
  413: 'Payload Too Large',
  415: 'Unsupported Media Type',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
  507: 'Insufficient Storage',
};

export function expectRefusal(answer: Answer, status: number, about: RegExp | string = /./): void {
  expect({ status: answer.status, body: answer.body }).toEqual({
    status,
    body: { errors: [{ code: CODES[status], message: expect.stringMatching(about) }] },
  });
  expect(answer.headers['content-type']).toMatch(/^application\/json/);
}
