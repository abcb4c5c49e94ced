import { uuidv7 } from '#platform/uuid';
import type { AdminHouse } from '#test/admin/admin-house';
import { idOf, makeVolume, sidecarOf } from '#test/admin/resource-calls';
import { makeHistory, makeStuck } from '#test/dashboard/dashboard-house';
import { parts } from '#test/support/parts';

export interface Furnished {
  /** Every page of the dashboard, with objects to show, and a word that stands on it when it has read them. */
  pages: readonly (readonly [path: string, word: string])[];
  stuck: string;
  volume: string;
  snapshot: string;
  base: string;
}

/** Something for every page to show. */
export async function furnish(house: AdminHouse): Promise<Furnished> {
  const { acme } = house;
  const at = '/tenants/acme';
  const history = parts().xfs
    ? await makeHistory(house)
    : { volume: idOf(await makeVolume(house, acme, 'orders-db')), snapshots: [] };
  if (history.snapshots.length === 0)
    for (const name of ['monday', 'wednesday']) {
      const body = { volume: history.volume, name };
      history.snapshots.push(idOf(await house.call(acme.operator, 'POST', `${at}/snapshots`, { body })));
    }
  // As the CSI driver calls them.
  await makeVolume(house, acme, 'pvc-8f6d3f0c-7f5e-4b7c-9d9a-0b2a9d0a1234');
  const binned = idOf(await makeVolume(house, acme, 'old-shop'));
  await house.change(acme.admin, 'DELETE', `${at}/volumes/${binned}`);
  const host = await makeHost(house);
  const { bucket, access } = await makeBucket(house);
  const limits = { volumes: '20', volume_bytes: String(10 ** 9), snapshots: '5', buckets: '1' };
  await house.change(house.root.admin, 'PATCH', `${at}/quotas`, { body: limits });
  const schedules = [{ name: 'hourly', everyMinutes: 60, retain: 24 }];
  await house.call(acme.admin, 'POST', `${at}/protection-templates`, { body: { name: 'day', schedules } });
  await makeCluster(house, 'prod');
  const stuck = await makeStuck(house, 'held-by-objects');
  const alert = await makeAlert(house);
  const [base, snapshot] = [history.snapshots[0]!, history.snapshots.at(-1)!];
  const pages: Furnished['pages'] = [
    ['/', 'Capacity'],
    ['/operations', 'bucket.delete'],
    [`/operations/${stuck}`, 'needs attention'],
    ['/workers', 'copies of data'],
    ['/alerts', 'pool main is 96 % full'],
    [`/alerts/${alert}`, 'Who was told'],
    ['/receivers', 'on-call'],
    ['/silences', 'a night of work'],
    ['/usage', 'Used in a month'],
    ['/audit', 'volume.create'],
    ['/account', 'the-admin@appliance'],
    ['/tenants', 'beta'],
    ['/all/volumes', 'orders-db'],
    ['/all/snapshots', 'wednesday'],
    ['/all/hosts', 'node-1'],
    ['/all/buckets', 'photos'],
    [at, 'Bytes of volumes'],
    [`${at}/usage`, 'volume bytes'],
    [`${at}/volumes`, 'orders-db'],
    [`${at}/volumes/${history.volume}`, 'wednesday'],
    [`${at}/recycle-bin`, 'old-shop'],
    [`${at}/snapshots`, 'wednesday'],
    [`${at}/snapshots/${snapshot}?base=${base}`, 'Changed-block map'],
    [`${at}/snapshot-sessions`, 'prod-1'],
    [`${at}/hosts`, 'node-1'],
    [`${at}/hosts/${host}`, 'iqn.1994-05.com.example:node-1'],
    [`${at}/publications`, 'Nothing is published'],
    [`${at}/buckets`, 'photos'],
    [`${at}/buckets/${bucket}`, 'photos'],
    [`${at}/accesses`, 'photos-reader'],
    [`${at}/accesses/${access}`, 'photos-reader'],
    [`${at}/backends`, 'local'],
    [`${at}/backends/local`, 'Capabilities'],
    [`${at}/endpoints`, 'test'],
    [`${at}/clusters`, 'prod'],
    [`${at}/protection-templates`, 'Retain-30Daily'],
    [`${at}/performance-policies`, 'SQL Server'],
    [`${at}/users`, 'the-viewer@acme'],
    [`${at}/tokens`, 'house'],
    ['/nowhere', 'names nothing'],
  ];
  return { pages, stuck, volume: history.volume, snapshot, base };
}

/** One that is open, somebody who was told of it in vain, and a silence of another. */
export async function makeAlert(house: AdminHouse): Promise<string> {
  const { root } = house;
  const target = { kind: 'slack', url: 'https://chat.invalid/services/hook' };
  const receiver = idOf(await house.call(root.admin, 'POST', '/receivers', { body: { name: 'on-call', target } }));
  const body = { rule: 'task_late', minutes: 60, reason: 'a night of work' };
  idOf(await house.call(root.admin, 'POST', '/silences', { body }));
  const id = uuidv7();
  await house.query(
    `INSERT INTO trivet.alert (tenant_id, id, rule, object, severity, state, what, means, todo, link, opened_at)
     VALUES ($1, $2, 'pool_full', 'acme/local/main', 'error', 'acknowledged', 'The pool main is 96 % full.',
             'When it is full, writes of hosts fail.', 'Enlarge it.', '/tenants/acme/backends/local', now())`,
    [root.id, id],
  );
  await house.query(
    `INSERT INTO trivet.alert_delivery (tenant_id, id, receiver_id, alert_id, event, content, attempts, error, next_at)
     VALUES ($1, $2, $3, $4, 'opened', '{}', 3, 'chat.invalid cannot be reached: ENOTFOUND', now() + interval '1 day')`,
    [root.id, uuidv7(), receiver, id],
  );
  return id;
}

/** With a connector that was heard of, and two snapshot sessions. */
export async function makeCluster(house: AdminHouse, name: string): Promise<void> {
  const connectors = {
    'connector-7f9c': { release: '0.1.0', connections: { test: 2 }, seenAt: new Date().toISOString() },
  };
  await house.query(
    `WITH made AS (
       INSERT INTO trivet.cluster (tenant_id, id, name, release, certificate_serial, certificate_until, connectors)
       VALUES ($1, gen_random_uuid(), $2, '0.1.0', '01', now() + interval '20 days', $3) RETURNING id
     )
     INSERT INTO trivet.snapshot_session (tenant_id, id, name, state, cluster_id, ttl_ms, expires_at)
     SELECT $1, gen_random_uuid(), $2 || '-' || n, 'ready', made.id, 3600000, now() + interval '1 hour'
       FROM made, generate_series(1, 2) AS n`,
    [house.acme.id, name, JSON.stringify(connectors)],
  );
}

async function makeHost(house: AdminHouse): Promise<string> {
  const [row] = await house.query<{ id: string }>(
    `INSERT INTO trivet.host (tenant_id, id, uuid, name, iqns, wwpns, nqns, networks)
     VALUES ($1, gen_random_uuid(), 'a-host', 'node-1', ARRAY['iqn.1994-05.com.example:node-1'], '{}', '{}', '{}')
     RETURNING id`,
    [house.acme.id],
  );
  return row!.id;
}

/** As a sidecar of the tenant makes them. */
async function makeBucket(house: AdminHouse): Promise<{ bucket: string; access: string }> {
  await sidecarOf(house, house.acme);
  const [bucket] = await house.query<{ id: string }>(
    `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint)
     VALUES ($1, gen_random_uuid(), $2, 'photos', 'created', 'ready', '{}', 'x') RETURNING id`,
    [house.acme.id, house.acme.backends.fake],
  );
  const [access] = await house.query<{ id: string }>(
    `INSERT INTO trivet.access (tenant_id, id, backend_id, name, account_id, state, desired, fingerprint)
     VALUES ($1, gen_random_uuid(), $2, 'photos-reader', 'uid-1', 'ready', '{}', 'x') RETURNING id`,
    [house.acme.id, house.acme.backends.fake],
  );
  await house.query(
    `INSERT INTO trivet.bucket_grant (tenant_id, access_id, bucket_id, mode, state)
     VALUES ($1, $2, $3, 'read_only', 'applied')`,
    [house.acme.id, access!.id, bucket!.id],
  );
  return { bucket: bucket!.id, access: access!.id };
}
