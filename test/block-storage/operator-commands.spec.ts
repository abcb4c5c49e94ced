import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blockBackendKinds } from '#backends/registry';
import { Database } from '#platform/database/database';
import { reportHostsWithoutChap } from '#storage/block/hosts/host-report';
import { readBlockFigures } from '#storage/block/pools/block-figures';
import { CommandLine, rows } from '#test/admin/commands/command-line';

const GIB = 1024 ** 3;
const ids = { backend: randomUUID(), kept: randomUUID(), lost: randomUUID(), binned: randomUUID(), host: randomUUID() };

/** What operators see of volumes, hosts, pools and policies, as processes that ask a gateway. */
const line = new CommandLine();
let database: Database;

beforeAll(async () => {
  await line.startGateway();
  const { appliance, acme, beta } = line.house;
  database = await Database.connect({
    appUrl: appliance.env.TRIVET_DATABASE_URL!,
    applicationName: 'trivet:test',
    poolSize: 2,
  });
  const [TENANT, OTHER] = [acme.id, beta.id];
  const query = (text: string, params: unknown[]) => line.house.query(text, params);
  for (const id of [TENANT, OTHER])
    await query(
      `INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, 'disks', 'reflink', '{"pools": []}')`,
      [id, ids.backend],
    );
  const pool = (tenant: string, name: string, state: string, used: number, portals: string[], reason: string | null) =>
    query(
      `INSERT INTO trivet.pool (tenant_id, backend_id, name, position, state, reason, clone, total_bytes, used_bytes, portals)
       VALUES ($1, $2, $3, 0, $4, $5, 'reflink', $6, $7, $8)`,
      [tenant, ids.backend, name, state, reason, 100 * GIB, used * GIB, portals],
    );
  await pool(TENANT, 'main', 'up', 90, ['192.0.2.1:3260', '127.0.0.1:3260'], null);
  await pool(OTHER, 'theirs', 'down', 0, [], 'it is not mounted');
  const volume = (id: string, name: string, state: string, condition: object | null) =>
    query(
      `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes,
                                  thick, destroy_on_delete, description, config, condition, binned_until)
       VALUES ($1, $2, $3, $4, $5, '{}', '', 'main', '', $6, false, false, '', '{}', $7, now() + interval '1 day')`,
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
     VALUES ($1, $2, 'orphan_image', '/pool/volumes/x', 'main', 'volume of 5 bytes that no row knows')`,
    [TENANT, ids.backend],
  );
});
afterAll(async () => {
  await database?.close();
  await line.close();
});

const asAcme = (args: readonly string[]) => [...args, '--tenant', 'acme'];
const trivet = (...args: string[]) => line.trivet(asAcme(args));
const json = (...args: string[]) => line.json(asAcme(args));

describe("operators' commands of the block leg", () => {
  it('set how much of a pool is promised', async () => {
    expect(await trivet('pool', 'thin', 'main', '2.5')).toBe('pool main promises 2.5 times its size\n');
    const ratios = await line.house.query('SELECT name, thin_ratio AS ratio FROM trivet.pool ORDER BY name');
    expect(ratios).toEqual([
      { name: 'main', ratio: 2.5 },
      { name: 'theirs', ratio: 1 },
    ]);
    for (const [name, ratio, code] of [
      ['main', '0', 65],
      ['main', 'much', 65],
      ['main', '1001', 65],
      ['theirs', '2', 1],
    ] as const)
      expect(await line.run(asAcme(['pool', 'thin', name, ratio]))).toMatchObject({ code, stdout: '' });
  });

  it('list hosts and pools', async () => {
    const { items: hosts } = await json('host', 'list');
    expect(hosts).toMatchObject([{ name: 'node-a', publications: 1, chapUser: null }]);
    expect(rows(await trivet('host', 'list'))).toEqual([['node-a', '1', '-', 'iqn.1994-05.com.redhat:a', 'host-uuid']]);
    const { items: pools } = await line.json(['pool', 'list']);
    expect(pools).toHaveLength(2);
    expect(pools.find(({ tenant }: { tenant: string }) => tenant === 'acme')).toMatchObject({
      backend: 'disks',
      state: 'up',
      volumes: 2,
      promised: String(9 * GIB),
    });
    expect(await line.trivet(['pool', 'list'])).toMatch(/theirs +down .* it is not mounted\n/);
    expect(await line.trivet(['pool', 'list'])).toMatch(
      /acme +main +up +share blocks +100 GiB +90\.0 % +9 GiB +2\.5x +- +2 +/,
    );
  });

  it('show findings', async () => {
    expect(await json('pool', 'findings')).toMatchObject({
      items: [{ kind: 'orphan_image', subject: '/pool/volumes/x' }],
    });
    expect(await line.trivet(['pool', 'findings', '--tenant', 'beta'])).toBe('nothing was found\n');
  });

  it('count for the alerts what all tenants have', async () => {
    expect(await readBlockFigures(database, blockBackendKinds())).toEqual({
      poolsUp: 1,
      poolsDown: 1,
      fullestPool: 0.9,
      binnedVolumes: 1,
      mostPublished: 0,
      findings: { orphan_image: 1, orphan_target: 0, lost_image: 0, larger_image: 0, protection_paused: 0 },
    });
  });

  it('find hosts whose name alone protects their volumes', async () => {
    expect(await reportHostsWithoutChap(database, line.house.acme.id)).toEqual([{ name: 'node-a', pool: 'main' }]);
    await line.house.query("UPDATE trivet.pool SET portals = '{127.0.0.1:3260}'", []);
    expect(await reportHostsWithoutChap(database, line.house.acme.id)).toEqual([]);
  });

  it('restore from the recycle bin', async () => {
    expect(await json('volume', 'bin')).toMatchObject({ items: [{ id: ids.binned, name: 'pvc-binned' }] });
    const wrong = await line.run(asAcme(['volume', 'restore', randomUUID()]));
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('(not_found)') });
    const named = await line.run(asAcme(['volume', 'restore', 'pvc-binned']));
    expect(named).toMatchObject({ code: 65, stderr: expect.stringContaining('the id that `volume bin` shows') });
    expect(await trivet('volume', 'restore', ids.binned)).toBe(`${ids.binned} is back; publish it as before\n`);
    expect(await trivet('volume', 'bin')).toBe('the recycle bin is empty\n');
    const back = await line.house.query("SELECT name FROM trivet.volume WHERE state = 'ready' ORDER BY name");
    expect(back.map(({ name }) => name)).toEqual(['pvc-binned', 'pvc-kept', 'pvc-lost']);
  });

  it('register a bucket, and list it', async () => {
    const { appliance } = line.house;
    appliance.fake!.seedForeignBucket('brown', 3);
    expect(await trivet('bucket', 'import', 'brown', '--backend', 'fake')).toBe('brown is registered\n');
    const { items } = await json('bucket', 'list');
    expect(items).toMatchObject([{ name: 'brown', origin: 'registered', state: 'ready', backend: 'fake' }]);
    expect(await trivet('bucket', 'list')).toMatch(/^brown +registered +ready +fake /m);
  });

  it('refuse a tenant that does not exist', async () => {
    const { code, stderr } = await line.run(['volume', 'bin', '--tenant', 'nobody']);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('there is no tenant nobody') });
  });
});
