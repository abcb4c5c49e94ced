import type { Table } from '../command-line/command.js';
import { ACCESS } from './access.js';
import { ALERT } from './alert.js';
import { APPLIANCE } from './appliance.js';
import { AUDIT } from './audit.js';
import { BACKEND } from './backend.js';
import { BUCKET } from './bucket.js';
import { BULK } from './bulk.js';
import { CLUSTER } from './cluster.js';
import { BACKUP } from './copies.js';
import { ENDPOINT } from './endpoint.js';
import { FIRST_RUN } from './first-run.js';
import { HOST } from './host.js';
import { LOGIN } from './login.js';
import { OPERATION } from './operation.js';
import { POLICY } from './policy.js';
import { POOL } from './pool.js';
import { PROTECTION } from './protection.js';
import { PUBLICATION } from './publication.js';
import { QUEUE } from './queue.js';
import { RECEIVER } from './receiver.js';
import { SEARCH } from './search.js';
import { SILENCE } from './silence.js';
import { SNAPSHOT } from './snapshot.js';
import { SNAPSHOT_SESSION } from './snapshot-session.js';
import { APPLIANCE_STATE } from './state-backup.js';
import { STORAGE_HOST } from './storage-host.js';
import { TENANT } from './tenant.js';
import { TOKEN } from './token.js';
import { FORECAST, USAGE } from './usage.js';
import { USER } from './user.js';
import { VIEW } from './view.js';
import { VOLUME } from './volume.js';

/** What tenants store; who is served by what, and the work under way. */
const STORAGE = [
  BUCKET,
  ACCESS,
  VOLUME,
  SNAPSHOT,
  SNAPSHOT_SESSION,
  BACKUP,
  PUBLICATION,
  HOST,
  POOL,
  USAGE,
  FORECAST,
  PROTECTION,
  POLICY,
];
const ADMINISTRATION = [
  TENANT,
  FIRST_RUN,
  USER,
  LOGIN,
  TOKEN,
  BACKEND,
  ENDPOINT,
  CLUSTER,
  OPERATION,
  BULK,
  QUEUE,
  STORAGE_HOST,
  ALERT,
  RECEIVER,
  SILENCE,
  VIEW,
  AUDIT,
];
const NOUNS = [...STORAGE, ...ADMINISTRATION, APPLIANCE_STATE];

/** Every command: what help, parsing, completion and tests know of them. */
export const TABLE: Table = {
  nouns: Object.fromEntries(NOUNS.map(({ noun, about }) => [noun, about])),
  commands: [...APPLIANCE, SEARCH, ...NOUNS.flatMap(({ commands }) => commands)],
};
