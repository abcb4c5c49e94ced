import type { FastifyRequest } from 'fastify';
import { BadToken } from '#cbt/cbt-errors';
import { loginToken } from '#cbt/login.guard';
import { coveredKey, limitOf, type MetadataQuery, offsetOf } from '#cbt/metadata-query';
import type { SnapshotKey } from '#changes/changed-blocks';
import { invalid } from '#platform/errors';
import { isUuid } from '#platform/uuid';
import type { SnapshotSessions } from '#storage/block/sessions/snapshot-session';
import type { SessionDirectory } from '#tenancy/logins/session-directory';

/** Who a token of the REST service can be of. */
export interface TokenDirectories {
  sessions: Pick<SnapshotSessions, 'authenticate'>;
  logins: Pick<SessionDirectory, 'authenticate'>;
}

/** Finds snapshots for the caller: all of a tenant for who is logged in, those of a session for who has its token. */
export interface Reader {
  tenantId: string;
  keysOf(text: string): SnapshotKey[];
}

/** `x-auth-token` or a bearer token, of a login over CSP or of a snapshot session. Throws BadToken. */
export async function readerOf(
  { sessions, logins }: TokenDirectories,
  request: Pick<FastifyRequest, 'headers'>,
): Promise<Reader> {
  const token = loginToken(request);
  if (token === undefined) throw new BadToken();
  const session = await sessions.authenticate(token);
  if (session) return { tenantId: session.tenantId, keysOf: text => [coveredKey(session, text)] };
  const login = await logins.authenticate(token);
  if (!login) throw new BadToken();
  const keysOf = (text: string): SnapshotKey[] => (isUuid(text) ? [{ id: text }, { name: text }] : [{ name: text }]);
  return { tenantId: login.tenantId, keysOf };
}

const KNOWN = { allocated: ['starting_offset', 'max_results'], delta: ['base', 'starting_offset', 'max_results'] };

/** The query of the URL; every value is text, and none may be given twice. */
export function toRestQuery(
  method: 'allocated' | 'delta',
  { tenantId, keysOf }: Reader,
  snapshot: string,
  query: Record<string, unknown>,
): MetadataQuery {
  for (const [name, value] of Object.entries(query)) {
    if (!KNOWN[method].includes(name)) throw invalid(name, `not known; known are ${KNOWN[method].join(', ')}`);
    if (typeof value !== 'string') throw invalid(name, 'given more than once');
  }
  const { base, starting_offset = '0', max_results = '0' } = query as Record<string, string>;
  if (method === 'delta' && !base) throw invalid('base', 'required: the snapshot to compare with');
  const perMessage = limitOf('max_results', Number(whole('max_results', max_results)));
  const from = offsetOf('starting_offset', whole('starting_offset', starting_offset));
  const target = keysOf(snapshot);
  return { tenantId, target, ...(base ? { base: keysOf(base) } : {}), from, perMessage };
}

const MAX_DIGITS = 20;

function whole(field: string, text: string): string {
  if (!/^-?\d+$/.test(text) || text.length > MAX_DIGITS) throw invalid(field, 'expected a whole number');
  return text;
}
