import type { Problem } from '#admin/contract/common';
import { ApiProblem, local } from './problem';
import type { Find, Input, Method, PathOf, Reply } from './routes';

const ROOT = '/api/v1';

let csrf: string | null = null;
/** Of the login; every change sends it back. */
export const setCsrf = (value: string | null): void => {
  csrf = value;
};

let ended = (): void => {};
/** What happens when a call is refused because nobody is logged in any more. */
export const whenEnded = (then: () => void): void => {
  ended = then;
};

export interface Answer<T> {
  data: T;
  /** For If-Match of a change. */
  etag: string | null;
  /** Id of the operation that goes on, of an answer 202. */
  operation: string | null;
}

export interface Extra {
  etag?: string | null;
  signal?: AbortSignal;
}

interface Sent {
  params?: Record<string, string>;
  query?: Record<string, string | number | undefined>;
  body?: unknown;
}

/** One call of the API. Throws ApiProblem. */
export async function call<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  input: Input<Find<M, P>>,
  { etag, signal }: Extra = {},
): Promise<Answer<Reply<Find<M, P>>>> {
  const { body, ...where } = input as Sent;
  const headers: Record<string, string> = { accept: 'application/json' };
  if (body !== undefined) headers['content-type'] = 'application/json';
  if (method !== 'GET' && csrf !== null) headers['x-csrf-token'] = csrf;
  const takesKey = method === 'POST' && !path.startsWith('/session') && !EACH_ITS_OWN.has(path);
  const attempt = takesKey ? `${path} ${JSON.stringify(input)}` : undefined;
  if (attempt !== undefined) headers['idempotency-key'] = keyOf(attempt);
  // Long work is followed by its operation; nobody waits for it before a dialog.
  if (method !== 'GET') headers.prefer = 'wait=2';
  if (etag) headers['if-match'] = etag;
  const init = { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) };
  const response = await reach(addressOf(path, where), init);
  if (attempt !== undefined) unanswered.delete(attempt);
  if (!response.ok) {
    const problem = await problemFrom(response);
    // What is about the login itself says so where it was asked.
    if (problem.code === 'unauthenticated' && !path.startsWith('/session')) ended();
    throw new ApiProblem(problem);
  }
  const answer = { etag: response.headers.get('etag'), operation: operationOf(response) };
  const text = await response.text();
  return { data: (text === '' ? undefined : JSON.parse(text)) as Reply<Find<M, P>>, ...answer };
}

/** Reads the object at `path` first: for a change from a list, where no version is at hand. It must be what was `seen`. */
export async function callFresh<M extends 'PATCH' | 'DELETE', P extends PathOf<M> & PathOf<'GET'>>(
  method: M,
  path: P,
  seen: { id: string },
  input: Input<Find<M, P>>,
): Promise<Answer<Reply<Find<M, P>>>> {
  const { params } = input as Sent;
  const { data, etag } = await call('GET', path, { params } as Input<Find<'GET', P>>);
  if ((data as { id: string }).id !== seen.id)
    throw new ApiProblem(
      local('precondition_failed', 'It was changed meanwhile', 'another one has its name by now', 412),
    );
  const change = call as (method: M, path: P, input: unknown, extra: Extra) => Promise<Answer<Reply<Find<M, P>>>>;
  return change(method, path, input, { etag });
}

export function addressOf(path: string, { params = {}, query = {} }: Sent): string {
  const at = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') search.set(name, String(value));
  const text = search.toString();
  return `${ROOT}${at}${text === '' ? '' : `?${text}`}`;
}

async function reach(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, { ...init, credentials: 'same-origin' });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiProblem(local('unreachable', 'Trivet cannot be reached', 'the gateway did not answer'));
  }
}

export async function problemFrom(response: Response): Promise<Problem> {
  const said = response.headers.get('content-type')?.includes('problem+json')
    ? ((await response.json().catch(() => undefined)) as Problem | undefined)
    : undefined;
  if (said) return said;
  const gone = response.status === 502 || response.status === 503 || response.status === 504;
  return gone
    ? local(
        'unreachable',
        'Trivet cannot be reached',
        `something before the gateway answered ${response.status}`,
        response.status,
      )
    : local('internal', 'An answer that this page does not understand', `status ${response.status}`, response.status);
}

const operationOf = ({ status, headers }: Response): string | null =>
  status === 202 ? (/\/operations\/([^/?]+)$/.exec(headers.get('location') ?? '')?.[1] ?? null) : null;

/** Shown each time anew, with an entry in the audit log. */
const EACH_ITS_OWN: ReadonlySet<string> = new Set(['/tenants/{tenant}/accesses/{access}/key']);

/** Keys of what was sent and not answered: whoever sends the same again after a broken connection makes nothing twice. */
const unanswered = new Map<string, string>();

function keyOf(attempt: string): string {
  const key = unanswered.get(attempt) ?? newKey();
  unanswered.set(attempt, key);
  return key;
}

/** randomUUID exists over TLS and on localhost only. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
}
