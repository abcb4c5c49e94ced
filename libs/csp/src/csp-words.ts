import { StorageError } from '#platform/errors';
import { NotOffered } from '#storage/block/volumes/volume-checks';

/**
 * The domain's fields as this protocol spells them. What a StorageClass may say is in `config`, under the keys that the
 * driver makes of its parameters (docs/callers.md#volumes-and-their-config).
 */
const NAMES = new Map(
  Object.entries({
    accessProtocol: 'access_protocol',
    'chap.user': 'chap_user',
    'chap.password': 'chap_password',
    deduplication: 'config.dedupe_enabled',
    encrypted: 'config.encrypted',
    folder: 'config.folder',
    host: 'host_uuid',
    image: 'config.import_volume_name',
    imported: 'config.import_volume_name',
    limitIops: 'config.limit_iops',
    limitMbps: 'config.limit_mbps',
    performancePolicy: 'performance_policy',
    pool: 'config.pool',
    protectionTemplate: 'protection_template',
    'source.snapshotId': 'base_snapshot_id',
    'source.volumeId': 'parent_volume_id',
    thick: 'config.thick',
    volumeGroupId: 'volume_group_id',
  }),
);

/** By which line of a StorageClass the driver asks for what a backend may lack. */
const LINES = new Map(
  Object.entries({
    deduplication: 'dedupeEnabled: "true"',
    encrypted: 'encrypted: "true"',
    limitIops: 'limitIops',
    limitMbps: 'limitMbps',
    thick: 'thick: "true"',
  }),
);

/** Of a snapshot whose cut keeps writers waiting for too long (docs/runbook.md). */
const FORCE = '; config.force=true takes the snapshot all the same';

/** The domain's error, told to whoever speaks this protocol: which field it is about, and what helps. */
export function inCspWords(error: StorageError): StorageError {
  const { field, kind } = error;
  if (field === undefined) return error;
  const name = NAMES.get(field) ?? field;
  const isTold = error.message.startsWith(`${field}:`) || error.message.startsWith(`${field} `);
  let message = isTold ? name + error.message.slice(field.length) : error.message;
  if (error instanceof NotOffered) message += `; remove the line ${LINES.get(field)} from the StorageClass`;
  // Operations that a release before this one has refused say it already.
  if (field === 'force' && !message.endsWith(FORCE)) message += FORCE;
  return new StorageError(kind, message, { ...error, cause: error.cause, field: name });
}
