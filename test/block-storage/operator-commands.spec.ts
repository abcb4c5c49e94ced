import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '#platform/database';
import { reportHostsWithoutChap } from '#storage/hosts/host-report';
import { readBlockFigures } from '#storage/pools/block-figures';
import { CommandHome } from '#test/support/command-home';

const GIB = 1024 ** 3;
const TENANT = randomUUID();
const OTHER = randomUUID();
const ids = { backend: randomUUID(), kept: randomUUID(), lost: randomUUID(), binned: randomUUID(), host: randomUUID() };

/** What operators see of volumes, hosts and pools, as processes on a home whose settings lead to a database of the test. */
let home: CommandHome;
let database: Database;

beforeAll(async () => {
  home = await CommandHome.create();
  database = await Database.connect({ appUrl: home.database.appUrl, applicationName: 'trivet:test', poolSize: 2 });
  const query = (text: string, params: unknown[]) => home.database.query(text, params);
  for (const [id, name] of [
    [TENANT, 'default'],
    [OTHER, 'other'],
  ]) {
    await query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2)', [id, name]);
    await query(
      `INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, 'local', 'reflink', '{"pools": []}')`,
      [id, ids.backend],
    );
  }
  const pool = (tenant: string, name: string, state: string, used: number, portals: string[], reason: string | null) =>
    query(
      `INSERT INTO trivet.pool (tenant_id, backend_id, name, position, state, reason, clone, total_bytes, used_bytes, portals)
       VALUES ($1, $2, $3, 0, $4, $5, 'reflink', $6, $7, $8)`,
      [tenant, ids.backend, name, state, reason, 100 * GIB, used * GIB, portals],
    );
  await pool(TENANT, 'default', 'up', 90, ['192.0.2.1:3260', '127.0.0.1:3260'], null);
  await pool(OTHER, 'theirs', 'down', 0, [], 'it is not mounted');
  const volume = (id: string, name: string, state: string, condition: object | null) =>
    query(
      `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes,
                                  thick, destroy_on_delete, description, config, condition, binned_until)
       VALUES ($1, $2, $3, $4, $5, '{}', '', 'default', '', $6, false, false, '', '{}', $7, now() + interval '1 day')`,
      [TENANT, id, ids.backend, name, state, 3 * GIB, condition && JSON.stringify(condition)],
    );
  await volume(ids.kept, 'pvc-kept', 'ready', null);
  await volume(ids.lost, 'pvc-lost', 'ready', { type: 'lost', message: 'its image is missing' });
  await volume(ids.binned, 'pvc-binned', 'binned', null);
  await query(
    `INSERT INTO trivet.host (tenant_id, id, uuid, name, iqns, wwpns, nqns, networks)
     VALUES ($1, $2, 'host-uuid', 'node-a', '{iqn.1994-05.com.redhat:a}', '{}', '{}', '{}')`,
    [TENANT, ids.host],
  );
  await query(
    `INSERT INTO trivet.publication (tenant_id, id, volume_id, host_id, access_protocol, state)
     VALUES ($1, $2, $3, $4, 'iscsi', 'applied')`,
    [TENANT, randomUUID(), ids.kept, ids.host],
  );
  await query(
    `INSERT INTO trivet.finding (tenant_id, backend_id, kind, subject, pool, message)
     VALUES ($1, $2, 'orphan_image', '/pool/volumes/x', 'default', 'volume of 5 bytes that no row knows')`,
    [TENANT, ids.backend],
  );
});
afterAll(async () => {
  await database?.close();
  await home?.close();
});

async function trivet(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await home.trivet(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}
const json = async (...args: string[]) => JSON.parse(await trivet(...args, '--json'));
/** Cells of a table's rows. */
const rows = (text: string): string[][] =>
  text
    .trim()
    .split('\n')
    .slice(1)
    .map(line => line.split(/ {2,}/));

describe("operators' commands of the block leg", () => {
  it('set how much of a pool is promised', async () => {
    expect(await trivet('pool', 'thin', 'default', '2.5')).toBe('pool default promises 2.5 times its size\n');
    const ratios = await home.database.query('SELECT name, thin_ratio AS ratio FROM trivet.pool ORDER BY name');
    expect(ratios).toEqual([
      { name: 'default', ratio: 2.5 },
      { name: 'theirs', ratio: 1 },
    ]);
    for (const [name, ratio] of [
      ['default', '0'],
      ['default', 'much'],
      ['theirs', '2'],
    ])
      await expect(trivet('pool', 'thin', name!, ratio!)).rejects.toThrow();
  });

  it('list hosts and pools', async () => {
    expect(await json('host', 'list')).toMatchObject([{ name: 'node-a', volumes: 1, chapUser: null }]);
    expect(rows(await trivet('host', 'list'))).toEqual([['node-a', '1', '-', 'iqn.1994-05.com.redhat:a', 'host-uuid']]);
    const pools = await json('pool', 'list');
    expect(pools).toHaveLength(2);
    expect(pools.find(({ tenant }: { tenant: string }) => tenant === 'default')).toMatchObject({
      backend: 'local',
      state: 'up',
      volumes: 2,
      promisedBytes: String(9 * GIB),
    });
    expect(await trivet('pool', 'list')).toMatch(/theirs +down .* it is not mounted\n/);
    expect(await trivet('pool', 'list')).toMatch(
      /default +default +up +share blocks +100 GiB +90\.0 % +9 GiB +2\.5x +- +2 +/,
    );
  });

  it('show findings', async () => {
    expect(await json('pool', 'findings')).toMatchObject([{ kind: 'orphan_image', subject: '/pool/volumes/x' }]);
    expect(await trivet('pool', 'findings', '--tenant', 'other')).toBe('nothing was found\n');
  });

  it('count for the alerts what all tenants have', async () => {
    expect(await readBlockFigures(database)).toEqual({
      poolsUp: 1,
      poolsDown: 1,
      fullestPool: 0.9,
      binnedVolumes: 1,
      findings: { orphan_image: 1, orphan_target: 0, lost_image: 0, protection_paused: 0 },
    });
  });

  it('find hosts whose name alone protects their volumes', async () => {
    expect(await reportHostsWithoutChap(database, TENANT)).toEqual([{ name: 'node-a', pool: 'default' }]);
    await home.database.query("UPDATE trivet.pool SET portals = '{127.0.0.1:3260}'", []);
    expect(await reportHostsWithoutChap(database, TENANT)).toEqual([]);
  });

  it('restore from the recycle bin', async () => {
    expect(await json('volume', 'bin')).toMatchObject([{ id: ids.binned, name: 'pvc-binned' }]);
    const wrong = await home.trivet(['volume', 'restore', randomUUID()]);
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toMatch(/^trivet: no volume .* is in the recycle bin\n$/);
    expect((await home.trivet(['volume', 'restore', 'pvc-binned'])).stderr).toContain('the id that `volume bin` shows');
    expect(await trivet('volume', 'restore', ids.binned)).toBe(`${ids.binned} is back; publish it as before\n`);
    expect(await trivet('volume', 'bin')).toBe('the recycle bin is empty\n');
    const back = await home.database.query("SELECT name FROM trivet.volume WHERE state = 'ready' ORDER BY name");
    expect(back.map(({ name }) => name)).toEqual(['pvc-binned', 'pvc-kept', 'pvc-lost']);
  });

  it('refuse a tenant that does not exist', async () => {
    const { code, stderr } = await home.trivet(['volume', 'bin', '--tenant', 'nobody']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^trivet: .*nobody.*\n$/);
  });
});
