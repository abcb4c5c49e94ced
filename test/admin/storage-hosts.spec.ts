import { afterAll, beforeAll, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import { AdminHouse } from '#test/admin/admin-house';

/** Hosts as their workers would have said that they are; what workers do about it is in test/hosts. */
let house: AdminHouse;
let backendId: string;
let shareId: string;
beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
  const file = `${house.appliance.folder}/shared-block.db`;
  const config = { file, pools: [{ name: 'main', path: '/srv/pool' }] };
  const create = async (tenant: string, body: object) => {
    const reply = await house.call(house.root.admin, 'POST', `/tenants/${tenant}/backends`, { body });
    expect(reply.status, JSON.stringify(reply.body)).toBe(201);
    return reply.body.id as string;
  };
  backendId = await create('appliance', { name: 'files', kind: 'fake-block', config });
  shareId = await create('acme', { name: 'files', share: 'files' });
});
afterAll(() => house?.close());

const LIVES = 0;
const SILENT = 60;
const host = (name: string, silentSeconds: number, reach: Record<string, readonly string[]> = {}, draining = false) =>
  house.query(
    `INSERT INTO trivet.storage_host (name, named, machine, release, seen_at, reach, draining)
     VALUES ($1, true, $1, '1.2.3', now() - $2 * interval '1 s', $3, $4)`,
    [
      name,
      silentSeconds,
      JSON.stringify(
        Object.fromEntries(
          Object.entries(reach).map(([what, pools]) => [
            what,
            pools.map(pool => ({ backend: backendId, name: pool, path: '/srv/pool', home: 'old' })),
          ]),
        ),
      ),
      draining,
    ],
  );
const homes = async () =>
  Object.fromEntries(
    (await house.query<{ id: string; host: string }>('SELECT backend_id AS id, host FROM trivet.pool_home')).map(
      ({ id, host }) => [id === backendId ? 'pool' : 'share', host],
    ),
  );
const home = (tenantId: string, id: string, at: string) =>
  house.query("INSERT INTO trivet.pool_home (tenant_id, backend_id, pool, host) VALUES ($1, $2, 'main', $3)", [
    tenantId,
    id,
    at,
  ]);
const set = async (...hosts: Promise<unknown>[]) => void (await Promise.all(hosts));
const reset = async (homeOf = 'old') => {
  await house.query('DELETE FROM trivet.storage_host');
  await house.query('DELETE FROM trivet.pool_home');
  await home(house.root.id, backendId, homeOf);
  await home(house.acme.id, shareId, homeOf);
};
const move = (body: object, { tenant = 'appliance', pool = 'main' } = {}) =>
  house.call(house.root.admin, 'POST', `/tenants/${tenant}/backends/files/pools/${pool}/move`, { body });

const SEES = { foreign: ['main'] };
it.each<[why: string, hosts: () => Promise<unknown>[], says: RegExp]>([
  [
    'a host that nobody knows',
    () => [host('old', LIVES, { absent: ['main'] })],
    /storage host old, and no worker .* on new/,
  ],
  [
    'one that is silent',
    () => [host('old', LIVES, { absent: ['main'] }), host('new', SILENT, SEES)],
    /storage host old, and new is silent since \d{4}-.*start its worker first/,
  ],
  [
    'one that is being drained',
    () => [host('old', LIVES, { absent: ['main'] }), host('new', LIVES, SEES, true)],
    /storage host old, and new is being drained: trivet storage-host undrain new/,
  ],
  [
    'one that sees another pool alone',
    () => [host('old', LIVES, { absent: ['main'] }), host('new', LIVES, { foreign: ['other'] })],
    /storage host old, and new does not see its mark file: mount its disk there/,
  ],
  [
    'while the old one has it mounted',
    () => [host('old', LIVES, { pools: ['main'] }), host('new', LIVES, SEES)],
    /storage host old lives and has pool main mounted: before new may have it, stop what uses it there, unmount it/,
  ],
  [
    'while the old one does not know: it hangs, or something holds it open',
    () => [host('old', LIVES, { absent: ['other'] }), host('new', LIVES, SEES)],
    /storage host old lives and does not say that it is without pool main: before new may have it, unmount it there/,
  ],
])('refuses to move a pool: %s, whatever a person says of the old one', async (_, hosts, says) => {
  await reset();
  await set(...hosts());
  for (const oldHostIsOff of [false, true]) {
    const reply = await move({ to: 'new', oldHostIsOff });
    expect(reply).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
    expect(reply.body.detail).toMatch(says);
    expect(reply.body.detail).toMatch(/^(pool main|storage host old)/);
  }
  expect(await homes()).toEqual({ pool: 'old', share: 'old' });
});

it('needs the word of a person about a silent host, and says so', async () => {
  await reset();
  await set(host('old', SILENT, { absent: ['main'] }), host('new', LIVES, SEES));
  const reply = await move({ to: 'new' });
  expect(reply.status).toBe(409);
  expect(reply.body.detail).toMatch(
    /^storage host old, .* silent since \d{4}-.* may still write to it.*--old-host-is-off/,
  );
  expect(await homes()).toEqual({ pool: 'old', share: 'old' });
  // Its heartbeat may be behind while a worker of it lives.
  await house.query(
    "INSERT INTO trivet.worker (id, host, pid, version, concurrency, kinds) VALUES ($1, 'old', 1, '1.2.3', 1, '{}')",
    [uuidv7()],
  );
  await house.query(`UPDATE trivet.storage_host SET reach = '{}' WHERE name = 'old'`);
  expect((await move({ to: 'new', oldHostIsOff: true })).body.detail).toMatch(/lives and does not say/);
  await house.query('DELETE FROM trivet.worker');
  expect(await move({ to: 'new', oldHostIsOff: true })).toMatchObject({
    status: 200,
    body: { from: 'old', to: 'new' },
  });
});

it('moves it with its shares and with what is unfinished, due at once, and writes it down', async () => {
  await reset();
  await set(host('old', SILENT), host('new', LIVES, SEES));
  const [held, leased] = [uuidv7(), uuidv7()];
  for (const [id, state] of [
    [held, 'pending'],
    [leased, 'running'],
  ])
    await house.query(
      `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name, request, pool, host,
                                     state, next_run_at, lease_until)
       VALUES ($1, $2, 'bucket.delete', 'fast', $3, 'bucket', $2, 'x', '{}', 'main', 'old', $4::text,
               CASE $4::text WHEN 'pending' THEN 'infinity' ELSE now() END::timestamptz,
               CASE $4::text WHEN 'running' THEN now() + interval '1 hour' END)`,
      [house.acme.id, id, shareId, state],
    );
  const reply = await move({ to: 'new', oldHostIsOff: true, reason: 'the machine is gone' });
  expect(reply).toMatchObject({
    status: 200,
    body: { tenant: 'appliance', backend: 'files', pool: 'main', from: 'old', to: 'new', shares: 1, operations: 2 },
  });
  expect(await homes()).toEqual({ pool: 'new', share: 'new' });
  const now = await house.query(
    `SELECT id, host, next_run_at <= now() AS due, lease_until > now() AS leased FROM trivet.operation WHERE pool = 'main' ORDER BY state`,
  );
  expect(now).toEqual([
    { id: held, host: 'new', due: true, leased: null },
    { id: leased, host: 'new', due: true, leased: true },
  ]);
  const [entry] = await house.audit('pool.move');
  expect(entry).toMatchObject({
    subject_name: 'main',
    tenant_name: 'appliance',
    reason: 'the machine is gone',
    before: { host: 'old' },
    after: { host: 'new', oldHostIsOff: true, shares: 1, operations: 2 },
  });
  const entries = (await house.audit('pool.move')).length;
  expect(await move({ to: 'new' })).toMatchObject({ status: 200, body: { from: 'new', to: 'new' } });
  expect(await house.audit('pool.move')).toHaveLength(entries);
  await house.query("DELETE FROM trivet.operation WHERE pool = 'main'");
});

it('is nothing that a share, its tenant, or who only looks could do', async () => {
  await reset();
  await set(host('old', LIVES, { absent: ['main'] }), host('new', LIVES, SEES));
  const ofShare = await move({ to: 'new' }, { tenant: 'acme' });
  expect(ofShare).toMatchObject({ status: 409 });
  expect(ofShare.body.detail).toMatch(/pool main is the appliance’s.*--tenant appliance/);
  const path = '/tenants/acme/backends/files/pools/main/move';
  expect((await house.call(house.acme.admin, 'POST', path, { body: { to: 'new' } })).status).toBe(403);
  expect((await house.call(house.root.operator, 'POST', path, { body: { to: 'new' } })).status).toBe(403);
  expect(await move({ to: 'new' }, { pool: 'none' })).toMatchObject({ status: 404 });
  expect(await homes()).toEqual({ pool: 'old', share: 'old' });
});

it('drains a host: says what to do about each pool, takes none into use, and is seen everywhere', async () => {
  await reset();
  await set(host('old', LIVES, { pools: ['main'] }), host('new', LIVES));
  const path = '/storage-hosts/old';
  const body = { draining: true, reason: 'the machine goes' };
  const drained = await house.call(house.root.admin, 'PATCH', path, { body });
  const state = {
    by: expect.stringContaining(house.root.admin.username),
    reason: 'the machine goes',
    since: expect.any(String),
  };
  expect(drained).toMatchObject({ status: 200, body: { name: 'old', state: 'up', draining: state } });
  expect(drained.body.has).toEqual([
    {
      tenant: 'appliance',
      backend: 'files',
      pool: 'main',
      shares: 1,
      volumes: 0,
      published: 0,
      moves: 'with_disk',
      todo: 'move its disk to another storage host, then: trivet pool move main --tenant appliance --backend files --to HOST',
      lacks: null,
      takenOver: null,
    },
  ]);
  await house.query(
    "UPDATE trivet.pool_home SET lacks = 'cluster', taken_from = 'before', taken_at = now(), taken_why = 'link' WHERE host = 'old'",
    [],
  );
  expect((await house.call(house.root.viewer, 'GET', path)).body.has).toMatchObject([
    { pool: 'main', lacks: 'cluster', takenOver: { from: 'before', at: expect.any(String), why: 'link' } },
  ]);
  expect((await house.call(house.root.admin, 'PATCH', path, { body })).body.draining).toEqual(drained.body.draining);
  const { items } = (await house.call(house.root.viewer, 'GET', '/storage-hosts')).body;
  expect(items).toMatchObject([
    { name: 'new', draining: null },
    { name: 'old', draining: state },
  ]);
  const { attention } = (await house.call(house.root.viewer, 'GET', '/overview')).body;
  expect(attention).toContainEqual(
    expect.objectContaining({
      severity: 'warning',
      what: expect.stringMatching(/^Storage host old is drained since .*: the machine goes\.$/),
      means: expect.stringContaining('has 2 pools still'),
    }),
  );
  const claim = async (at: string, pool: string) =>
    (
      await house.query<{ home: string | null }>('SELECT home FROM trivet.claim_pool($1, $2, $3, $4)', [
        at,
        house.root.id,
        backendId,
        pool,
      ])
    )[0]!.home;
  expect(await claim('old', 'fresh')).toBeNull();
  expect(await claim('new', 'fresh')).toBe('new');
  const back = await house.call(house.root.admin, 'PATCH', path, { body: { draining: false } });
  expect(back).toMatchObject({ status: 200, body: { draining: null } });
  expect(await claim('old', 'fresher')).toBe('old');
  const reasons = async (verb: string) => (await house.audit(`storage_host.${verb}`)).map(({ reason }) => reason);
  expect(await reasons('drain')).toEqual(['the machine goes', 'the machine goes']);
  expect(await reasons('undrain')).toEqual([null]);
  for (const method of ['GET', 'PATCH'] as const)
    expect(
      await house.call(house.root.admin, method, '/storage-hosts/nobody', method === 'GET' ? {} : { body }),
    ).toMatchObject({
      status: 404,
    });
  expect((await house.call(house.acme.admin, 'PATCH', path, { body })).status).toBe(403);
});

it('counts what goes away with a host: volumes of its shares, and those that are published', async () => {
  await reset();
  await set(host('old', LIVES, { pools: ['main'] }));
  const ids = [uuidv7(), uuidv7(), uuidv7()];
  for (const [n, id] of ids.entries())
    await house.query(
      `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
                                  destroy_on_delete, description, config)
       VALUES ($1, $2, $3, $4, $5, '{}', '', 'main', '', 4096, false, true, '', '{}')`,
      [house.acme.id, id, shareId, `v-${n}`, n === 2 ? 'binned' : 'ready'],
    );
  const initiator = uuidv7();
  await house.query(
    `INSERT INTO trivet.host (tenant_id, id, uuid, name, iqns, wwpns, nqns, networks) VALUES ($1, $2, 'i', 'i', '{}', '{}', '{}', '{}')`,
    [house.acme.id, initiator],
  );
  await house.query(
    `INSERT INTO trivet.publication (tenant_id, id, volume_id, host_id, access_protocol, state) VALUES ($1, $2, $3, $4, 'iscsi', 'wanted')`,
    [house.acme.id, uuidv7(), ids[0], initiator],
  );
  const { has } = (await house.call(house.root.viewer, 'GET', '/storage-hosts/old')).body;
  expect(has).toMatchObject([{ pool: 'main', shares: 1, volumes: 2, published: 1 }]);
});

it('leaves a share where the pool is that it lies in', async () => {
  await reset('new');
  await set(host('old', LIVES), host('new', LIVES));
  await house.query('DELETE FROM trivet.pool_home WHERE backend_id = $1', [shareId]);
  const claim = (at: string) =>
    house.query("SELECT home FROM trivet.claim_pool($1, $2, $3, 'main')", [at, house.acme.id, shareId]);
  expect(await claim('old')).toEqual([{ home: null }]);
  expect(await claim('new')).toEqual([{ home: 'new' }]);
});
