import { z } from 'zod';
import type { MetadataService } from '#cbt/sessions-api';
import { invalid } from '#platform/errors';
import type { SessionRequest, SessionState, SessionView } from '#storage/block/sessions/snapshot-session';

const sessionBody = z.strictObject({
  name: z.string({ error: 'expected text' }).optional(),
  snapshots: z.array(z.string({ error: 'expected the id or the name of a snapshot' }), {
    error: 'expected a list of ids or names of snapshots',
  }),
  ttlSeconds: z.number({ error: 'expected a number of seconds' }).optional(),
});

/** Throws `invalid_argument` that names the field. */
export function toSessionRequest(body: unknown): SessionRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw invalid('request body', 'expected a JSON object, e.g. {"snapshots": ["<id or name>"]}');
  const parsed = sessionBody.safeParse(body);
  if (parsed.success) {
    const { name, snapshots, ttlSeconds } = parsed.data;
    return { name, snapshots, ttlMs: ttlSeconds === undefined ? undefined : Math.round(ttlSeconds * 1000) };
  }
  const [issue] = parsed.error.issues;
  if (issue?.code === 'unrecognized_keys') throw invalid(String(issue.keys[0]), 'there is no such field');
  throw invalid(issue?.path.join('.') || 'request body', issue?.message ?? 'not understood');
}

const STATES = { pending: 'Pending', ready: 'Ready', failed: 'Failed' } satisfies Record<SessionState, string>;

const base64 = (pem: string): string => Buffer.from(pem, 'utf8').toString('base64');

/**
 * The KEP's SnapshotSessionRequest with its status, flat. Binary fields are base64, as in custom resources; the token is
 * text. Without `sessionToken` it is another user's.
 */
export function toSession(view: SessionView, service: () => MetadataService) {
  const session = {
    name: view.name,
    id: view.id,
    snapshots: view.snapshots,
    sessionState: STATES[view.state],
    creationTime: view.createdAt.toISOString(),
    expiryTime: view.expiresAt.toISOString(),
  };
  if (view.state === 'failed') return { ...session, error: view.error };
  if (view.state === 'pending') return session;
  const { address, caCert } = service();
  return {
    ...session,
    driver: view.driver,
    sessionToken: view.token,
    sessionURL: address,
    caCert: base64(caCert),
  };
}

/** The KEP's SnapshotServiceConfiguration, one for all drivers that are served here. */
export const toConfiguration = ({ address, caCert, drivers }: MetadataService) => ({
  address,
  caCert: base64(caCert),
  drivers,
});
