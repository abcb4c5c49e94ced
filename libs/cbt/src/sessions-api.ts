import type { SnapshotSessions } from '#storage/block/sessions/snapshot-session';
import type { SessionDirectory } from '#tenancy/logins/session-directory';

/** Under this token: SessionsApi. */
export const SESSIONS_API = Symbol('SessionsApi');

export interface SessionsApi {
  sessions: SnapshotSessions;
  logins: Pick<SessionDirectory, 'authenticate'>;
  /** What clients of the metadata service need, as it is now: certificates are renewed while we run. */
  service(): MetadataService;
}

/** Where SnapshotMetadata is served over TLS. */
export interface MetadataService {
  /** `host:port`, as clients reach it. */
  address: string;
  /** PEM: who signed the certificate that is served there. */
  caCert: string;
  /** CSI drivers whose snapshots it knows. */
  drivers: readonly string[];
}
