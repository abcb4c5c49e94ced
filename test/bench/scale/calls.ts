import type { AdminHouse } from '#test/admin/admin-house';
import { TENANTS } from '#test/bench/scale/fill';
import type { Measured } from '#test/bench/scale/measured';

/** As many as each tenant of the smallest appliance has. */
const PAGE = '8';

/** What drivers ask for: accepted and not waited for, so that no store has a part in it. */
export async function callsOfDrivers(house: AdminHouse): Promise<Measured[]> {
  const { blockStorage } = house.parts;
  const ids = await house.query<{ tenantId: string; backendId: string }>(
    'SELECT scale.id(1, t) AS "tenantId", scale.id(2, t) AS "backendId" FROM generate_series(0, $1::int - 1) AS t',
    [TENANTS],
  );
  // A tenth of each sort: the third one of a tenant is published nowhere, and nothing was cloned from it.
  const volumes = await house.query<{ id: string }>(
    'SELECT scale.id(5, 200 + t) AS id FROM generate_series(0, $1::int - 1) AS t',
    [TENANTS],
  );
  let made = 0;
  const next = () => made++ % TENANTS;
  const caller = (t: number) => ({ ...ids[t]!, backendKind: 'reflink', deadline: Date.now() });
  const request = (name: string) => ({
    name,
    sizeBytes: 1n << 30n,
    description: '',
    destroyOnDelete: true,
    config: {},
  });
  const isLate = (error: unknown) => {
    if ((error as { kind?: string }).kind !== 'aborted' && (error as { kind?: string }).kind !== 'timeout') throw error;
  };
  await blockStorage.volumes.create(caller(0), request('repeated')).catch(isLate);
  await house.query("UPDATE trivet.volume SET state = 'ready', active_operation = NULL WHERE name = 'repeated'");
  return [
    {
      name: 'accept a creation',
      run: () => blockStorage.volumes.create(caller(next()), request(`new-${made}`)).catch(isLate),
    },
    {
      name: 'accept a snapshot',
      run: () => {
        const t = next();
        const wanted = { volumeId: volumes[t]!.id, name: `new-${made}`, description: '', config: {} };
        return blockStorage.snapshots.create(caller(t), wanted).catch(isLate);
      },
    },
    {
      name: 'accept a deletion',
      run: async () => {
        const t = next();
        const [row] = await house.query<{ id: string }>(
          `SELECT id FROM trivet.snapshot WHERE tenant_id = $1 AND volume_id = $2 AND state = 'ready' AND NOT hidden LIMIT 1`,
          [ids[t]!.tenantId, volumes[t]!.id],
        );
        await blockStorage.snapshots.delete(caller(t), row!.id).catch(isLate);
      },
    },
    { name: 'a repeated call', run: () => blockStorage.volumes.create(caller(0), request('repeated')) },
  ];
}

/** What administrators look at: of one tenant, and of all. */
export function pagesOfAdministrators(house: AdminHouse): Measured[] {
  const tenant = '/tenants/tenant-7';
  const page = (name: string, path: string, query: Record<string, string> = {}): Measured => ({
    name,
    run: () => read(house, path, { limit: PAGE, ...query }),
  });
  /** So many pages come before it. */
  const deep = (name: string, path: string, query: Record<string, string>, pages: number): Measured => {
    let asked = query;
    return {
      name,
      async before() {
        asked = query;
        for (let n = 0; n < pages; n++) {
          const { next } = await read(house, path, asked);
          if (next) asked = { ...query, cursor: next };
        }
      },
      run: () => read(house, path, asked),
    };
  };
  return [
    page('volumes: first page', `${tenant}/volumes`),
    deep('volumes: fourth page', `${tenant}/volumes`, { limit: '2' }, 3),
    page('volumes: of a state', `${tenant}/volumes`, { state: 'binned', limit: '1' }),
    page('volumes: by size', `${tenant}/volumes`, { sort: '-size' }),
    page('volumes: with a condition', `${tenant}/volumes`, { condition: 'true' }),
    page('volumes: search', `${tenant}/volumes`, { search: 'pvc-', limit: '2' }),
    page('volumes: search for what is not there', `${tenant}/volumes`, { search: 'nobody-has-it' }),
    page('snapshots: first page', `${tenant}/snapshots`),
    page('snapshots: newest', `${tenant}/snapshots`, { sort: '-createdAt' }),
    page('snapshots: search for what is not there', `${tenant}/snapshots`, { search: 'nobody-has-it' }),
    page('publications: first page', `${tenant}/publications`, { limit: '2' }),
    page('hosts: first page', `${tenant}/hosts`, { limit: '1' }),
    page('buckets: first page', `${tenant}/buckets`, { limit: '1' }),
    page('accesses: first page', `${tenant}/accesses`, { limit: '1' }),
    page('volumes of all tenants: first page', '/volumes'),
    deep('volumes of all tenants: twentieth page', '/volumes', { limit: PAGE }, 19),
    page('volumes of all tenants: largest', '/volumes', { sort: '-size' }),
    page('volumes of all tenants: newest', '/volumes', { sort: '-createdAt' }),
    page('volumes of all tenants: with a condition', '/volumes', { condition: 'true' }),
    page('volumes of all tenants: search for what is not there', '/volumes', { search: 'nobody-has-it' }),
    page('snapshots of all tenants: newest', '/snapshots'),
    page('buckets of all tenants: first page', '/buckets'),
    page('hosts of all tenants: first page', '/hosts'),
    page('search: what begins so, of all tenants', '/search', { q: 'pvc-1', limit: '5' }),
    page('search: what is not there', '/search', { q: 'nobody-has-it', limit: '5' }),
    page('search: an id that nobody has', '/search', { q: '019f0000-0000-7000-8000-000000000000', limit: '5' }),
    page('operations: first page', '/operations'),
    deep('operations: twentieth page', '/operations', { limit: PAGE }, 19),
    page('operations: failed', '/operations', { state: 'failed' }),
    page('operations: pending or running', '/operations', { state: 'pending,running' }),
    page('operations: of a resource', '/operations', { resource: 'pvc-7' }),
    page('operations: of a tenant', '/operations', { tenant: 'tenant-7' }),
    page('audit log: first page', '/audit'),
    page('audit log: of an action that nobody did', '/audit', { action: 'user.delete' }),
    { name: 'quotas of a tenant', run: () => read(house, `${tenant}/quotas`) },
    { name: 'pools', run: () => read(house, '/pools') },
    { name: 'tenants', run: () => read(house, '/tenants') },
  ];
}

async function read(house: AdminHouse, path: string, query: Record<string, string> = {}) {
  const { status, body } = await house.call(house.root.admin, 'GET', path, { query });
  if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
  return body as { next?: string | null };
}
