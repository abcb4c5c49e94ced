import { Batcher } from '#operations/accepting/batcher';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { Endpoint } from '#storage/object/endpoint';
import type { DesiredBucket } from '#storage/shared/desired-state';

export type BucketOrigin = 'created' | 'registered';
export type BucketState = 'creating' | 'ready' | 'deleting' | 'gone';

export interface BucketCondition {
  type: string;
  message: string;
}

/** What the fast path reads; `id` is null when no such bucket lives. */
export interface FoundBucket {
  serves: boolean;
  id: string | null;
  origin: BucketOrigin;
  state: BucketState;
  fingerprint: Buffer;
  activeOperation: string | null;
  condition: BucketCondition | null;
}

export interface BucketRow extends FoundBucket {
  id: string;
  desired: DesiredBucket;
}

const FIND = sql(
  'bucket_find',
  `SELECT serves, id, origin, state, fingerprint, active_operation AS "activeOperation", condition
     FROM trivet.find_buckets($1, $2, $3)`,
);
/**
 * Names in one order: two that claim the same ones wait for each other, and never in a circle. takes_new stands where it
 * is called for the backends of the new ones alone: as a condition it may be asked about all of the tenant's.
 */
export const CLAIM_BUCKETS = sql(
  'bucket_claim',
  `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint, active_operation)
   SELECT $1, new.id, new.backend, new.name,
          CASE WHEN b.effective_state = 'active' OR trivet.takes_new(b.name, b.effective_state) THEN 'created' END,
          'creating', new.desired, decode(new.fingerprint, 'hex'), new.operation
     FROM json_to_recordset($4::json)
       AS new (id uuid, backend uuid, name text, desired jsonb, fingerprint text, operation uuid)
     JOIN trivet.backend b ON b.tenant_id = $1 AND b.id = new.backend
    ORDER BY new.name
   ON CONFLICT (tenant_id, backend_id, name) WHERE state <> 'gone' DO NOTHING
   RETURNING id`,
);
const LOCK = sql(
  'bucket_lock',
  `SELECT id, origin, state, fingerprint, active_operation AS "activeOperation", condition, desired
     FROM trivet.bucket
    WHERE tenant_id = $1 AND backend_id = $2 AND name = $3 AND state <> 'gone'
      FOR UPDATE`,
);
const DESIRED = sql('bucket_desired', 'SELECT desired FROM trivet.bucket WHERE tenant_id = $1 AND id = $2');
const SET_STATE = sql(
  'bucket_set_state',
  `UPDATE trivet.bucket SET state = $3, active_operation = $4, updated_at = now() WHERE tenant_id = $1 AND id = $2`,
);

/** One statement, no transaction around it, for all that ask at the same moment: the path that sidecars repeat. */
export class BucketFinder {
  private readonly asked = new Batcher<Question, FoundBucket | undefined>(async (_, questions) => {
    const { tenantId, id } = questions[0]!.endpoint;
    const rows = await this.database.call<FoundBucket>(FIND, [tenantId, id, questions.map(({ name }) => name)]);
    return questions.map((_question, n) => rows[n]);
  });

  constructor(private readonly database: Database) {}

  find(endpoint: Endpoint, name: string): Promise<FoundBucket | undefined> {
    return this.asked.add(endpoint.id, { endpoint, name });
  }
}

interface Question {
  endpoint: Endpoint;
  name: string;
}

/** A row of CLAIM_BUCKETS: a new incarnation of the name. */
export const newBucket = (
  place: BucketOwner,
  bucket: { id: string; name: string; desired: DesiredBucket; fingerprint: Buffer; operationId: string },
) => ({
  id: bucket.id,
  backend: place.backendId,
  name: bucket.name,
  desired: bucket.desired,
  fingerprint: bucket.fingerprint.toString('hex'),
  operation: bucket.operationId,
});

/** Whose bucket, and where. */
export type BucketOwner = Pick<Endpoint, 'tenantId' | 'backendId'>;

export async function lockBucket(tx: Tx, endpoint: BucketOwner, name: string): Promise<BucketRow | undefined> {
  const [row] = await tx.query<BucketRow>(LOCK, [endpoint.tenantId, endpoint.backendId, name]);
  return row;
}

/** For the message of a conflict; undefined when the history of a gone one was cut off meanwhile. */
export async function readDesired(
  database: Database,
  { tenantId }: BucketOwner,
  bucketId: string,
): Promise<DesiredBucket | undefined> {
  const [row] = await database.withTenant(tenantId, tx =>
    tx.query<{ desired: DesiredBucket }>(DESIRED, [tenantId, bucketId]),
  );
  return row?.desired;
}

export async function setBucketState(
  tx: Tx,
  endpoint: BucketOwner,
  bucketId: string,
  state: BucketState,
  operationId: string | null,
): Promise<void> {
  await tx.query(SET_STATE, [endpoint.tenantId, bucketId, state, operationId]);
}
