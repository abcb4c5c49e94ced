import { GRANT_FIELDS } from '#cosi/v1alpha2-mapper';
import { uuidv7 } from '#platform/uuid';
import type { BlockCaller } from '#storage/block/block-storage';
import type { Endpoint, EndpointCaller } from '#storage/object/endpoint';
import type { ObjectStorage } from '#storage/object/object-storage';
import type { AdminHouse, HouseTenant, Reply } from '#test/admin/admin-house';
import { callerAt } from '#test/support/endpoint-caller';
import { until } from '#test/support/parts';

export const MIB = 1_048_576;

/** A driver of the tenant, on its backend of block volumes. */
export async function driverOf(house: AdminHouse, tenant: HouseTenant): Promise<BlockCaller> {
  const backendId = tenant.backends.local!;
  const [row] = await house.query<{ kind: string }>('SELECT kind FROM trivet.backend WHERE id = $1', [backendId]);
  return { tenantId: tenant.id, backendId, backendKind: row!.kind, deadline: Date.now() + 20_000 };
}

/** A worker has looked at the pools, so that volumes can be made. */
export async function poolsSeen(house: AdminHouse, tenant: HouseTenant): Promise<void> {
  await until('a worker has seen the pools', async () => {
    const rows = await house.query("SELECT FROM trivet.pool WHERE tenant_id = $1 AND state = 'up'", [tenant.id]);
    return rows.length > 0;
  });
}

export const makeVolume = (house: AdminHouse, tenant: HouseTenant, name: string, more: object = {}): Promise<Reply> =>
  house.call(tenant.operator, 'POST', `/tenants/${tenant.name}/volumes`, {
    body: { name, size: String(8 * MIB), ...more },
  });

/** Volumes with names of four digits, as if they had been made. */
export async function insertVolumes(
  house: AdminHouse,
  tenant: HouseTenant,
  { from, to, step = 1 }: { from: number; to: number; step?: number },
): Promise<void> {
  await house.query(
    `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
                                destroy_on_delete, description, config)
     SELECT $1, gen_random_uuid(), $2, 'page-' || lpad(n::text, 5, '0'), 'ready', '{}', 'x', 'main', '', 1024 * (1 + n % 7),
            false, false, '', '{}'
       FROM generate_series($3::int, $4::int, $5::int) AS n`,
    [tenant.id, tenant.backends.local, from, to, step],
  );
}

const REGISTERED = {
  v: 1,
  protocols: ['s3'],
  spec: { versioning: false, objectLock: false, tags: {}, deletePolicy: 'retain' },
};

/** Buckets that are there already, known as if they had been imported; not yet seen by anybody. Gives their ids. */
export async function insertBuckets(
  house: AdminHouse,
  tenant: HouseTenant,
  ...names: readonly string[]
): Promise<string[]> {
  const rows = await house.query<{ id: string }>(
    `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint)
     SELECT $1, gen_random_uuid(), $2, name, 'registered', 'ready', $4, 'x' FROM unnest($3::text[]) AS name
     RETURNING id`,
    [tenant.id, tenant.backends.fake, names, JSON.stringify(REGISTERED)],
  );
  return rows.map(({ id }) => id);
}

/** Buckets as if they had been made here; the store need not have them. Gives their ids, in the order of the names. */
export async function createdBuckets(
  house: AdminHouse,
  tenant: HouseTenant,
  ...names: readonly string[]
): Promise<string[]> {
  const ids = await insertBuckets(house, tenant, ...names);
  await house.query(`UPDATE trivet.bucket SET origin = 'created' WHERE id = ANY ($1)`, [ids]);
  return ids;
}

/** One such, with so many objects at the fake. Gives its id. */
export async function registerBucket(
  house: AdminHouse,
  tenant: HouseTenant,
  name: string,
  objects?: number,
): Promise<string> {
  house.appliance.fake!.seedForeignBucket(name, objects);
  return (await insertBuckets(house, tenant, name))[0]!;
}

/** A grant of read and write on these buckets, as a sidecar asks for it. */
export const grantOn = (storage: ObjectStorage, sidecar: EndpointCaller, name: string, ...buckets: readonly string[]) =>
  storage.accesses.grant(sidecar, {
    name,
    protocol: 's3',
    buckets: buckets.map(bucketId => ({ bucketId, mode: 'read_write' })),
    fields: GRANT_FIELDS,
  });

export const idOf = (reply: Reply): string => reply.body.id as string;

/** Of the operation that a 202 points to. */
export const operationOf = ({ headers }: Reply): string =>
  /^\/api\/v1\/operations\/([0-9a-f-]{36})$/.exec(String(headers.location))![1]!;

export async function ended(house: AdminHouse, operationId: string): Promise<string> {
  let state = '';
  await until(`operation ${operationId} ended`, async () => {
    const [row] = await house.query<{ state: string }>('SELECT state FROM trivet.operation WHERE id = $1', [
      operationId,
    ]);
    state = row!.state;
    return !['pending', 'running'].includes(state);
  });
  return state;
}

/** Takes everything of a list, page by page; `between` runs after each page. */
export async function readAll(
  house: AdminHouse,
  tenant: HouseTenant,
  path: string,
  query: Record<string, string>,
  between: (page: number) => Promise<void> = async () => undefined,
  // biome-ignore lint/suspicious/noExplicitAny: of any list
): Promise<any[]> {
  const items = [];
  let cursor: string | null = null;
  for (let page = 0; page === 0 || cursor; page++) {
    const reply = await house.call(tenant.viewer, 'GET', `/tenants/${tenant.name}/${path}`, {
      query: { ...query, ...(cursor ? { cursor } : {}) },
    });
    if (reply.status !== 200) throw new Error(JSON.stringify(reply.body));
    items.push(...reply.body.items);
    cursor = reply.body.next;
    await between(page);
  }
  return items;
}

/** A sidecar of the tenant, at a socket of its own. */
export async function sidecarOf(
  house: AdminHouse,
  tenant: HouseTenant,
  { id: backendId, kind: backendKind } = { id: tenant.backends.fake!, kind: 'fake' },
): Promise<EndpointCaller> {
  const endpoint: Endpoint = {
    id: uuidv7(),
    tenantId: tenant.id,
    backendId,
    backendKind,
    protocols: ['s3'],
    accessPoint: { endpoint: 'http://fake.invalid', region: 'default', addressing: 'path' },
    driverName: 'test',
    name: 'test',
    grantMismatch: 'already_exists',
    accessModeNumbers: 'auto',
  };
  await house.query(
    "INSERT INTO trivet.endpoint (tenant_id, id, name, protocol, backend_id) VALUES ($1, $2, 'test', 'cosi', $3)",
    [tenant.id, endpoint.id, backendId],
  );
  return callerAt(endpoint);
}

/** Before each of 1,000 rows another one is put in while the list is read in pages of 37. */
export async function readsAllOfMoving(
  house: AdminHouse,
  tenant: HouseTenant,
  path: string,
  query: Record<string, string>,
  insert: (range: { from: number; to: number; step: number }) => Promise<void>,
): Promise<{ missed: string[]; twice: number }> {
  await insert({ from: 0, to: 1_998, step: 2 });
  let made = 1;
  const items = await readAll(house, tenant, path, { ...query, limit: '37' }, async () => {
    await insert({ from: made, to: made + 40, step: 2 });
    made += 42;
  });
  const seen = new Set(items.map(({ name }) => name));
  const there = Array.from({ length: 1_000 }, (_, n) => pageName(2 * n));
  return {
    missed: there.filter(name => !seen.has(name)),
    twice: items.length - new Set(items.map(({ id }) => id)).size,
  };
}

export const pageName = (n: number): string => `page-${String(n).padStart(5, '0')}`;

/** Stops the worker while the block runs. */
export async function pausedWorkers(of: AdminHouse): Promise<AsyncDisposable> {
  const worker = of.appliance.process('worker');
  worker.signal('SIGSTOP');
  return {
    [Symbol.asyncDispose]: async () => {
      worker.signal('SIGCONT');
      await of.appliance.settled();
    },
  };
}

/** What is answered while no worker runs: nothing that it began can have ended. Ended it is when this is. */
export async function unworked<T>(of: AdminHouse, call: () => Promise<T>): Promise<T> {
  await using _ = await pausedWorkers(of);
  return await call();
}
