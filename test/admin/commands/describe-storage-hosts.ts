import { describe, expect, it } from 'vitest';
import { type CommandLine, rows } from './command-line.js';

/** Machines that workers run on, and pools that go from one to another. */
export function describeStorageHosts(line: CommandLine): void {
  const { run, trivet, json } = line;
  const host = (name: string, reach: object) =>
    line.house.query(
      `INSERT INTO trivet.storage_host (name, named, machine, release, reach) VALUES ($1, true, $1, '0', $2)
       ON CONFLICT (name) DO UPDATE SET reach = excluded.reach, seen_at = now()`,
      [name, JSON.stringify(reach)],
    );

  describe('trivet storage-host', () => {
    it('drains a host and says what to do about its pools, shows it, and takes it back', async () => {
      const [{ name }] = (await json(['storage-host', 'list'])).items;
      const drained = await trivet(['storage-host', 'drain', name, '--reason', 'the machine goes']);
      expect(drained).toContain(`${name} takes no further pool into use`);
      expect(drained).toMatch(
        /pool \S+: \d+ volumes, \d+ of them published, 0 shares; move its disk .*trivet pool move \S+ --tenant acme --backend local --to HOST/,
      );
      const shown = await trivet(['storage-host', 'show', name]);
      expect(shown).toMatch(/drained since \S+ by the-admin@appliance.*: the machine goes/);
      expect(shown).toMatch(/exported by nothing at/);
      expect(rows(await trivet(['storage-host', 'list']))[0]!.slice(0, 2)).toEqual([name, 'up, draining']);
      expect(await trivet(['storage-host', 'undrain', name])).toContain(`${name} is in use again`);
      expect(rows(await trivet(['storage-host', 'list']))[0]![1]).toBe('up');
      const unknown = await run(['storage-host', 'show', 'nobody']);
      expect(unknown).toMatchObject({ code: expect.any(Number), stderr: expect.stringContaining('nobody') });
      expect(unknown.code).not.toBe(0);
    });
  });

  describe('trivet pool move', () => {
    it('is refused while nothing has moved, with what to do, and moves what has', async () => {
      const [{ pools }] = (await json(['backend', 'list', '--tenant', 'acme'])).items.filter(
        (backend: { name: string }) => backend.name === 'local',
      );
      const pool: string = pools[0].name;
      await host('node-z', {});
      const args = ['pool', 'move', pool, '--tenant', 'acme', '--to', 'node-z'];
      const refused = await run(args);
      expect(refused.code).not.toBe(0);
      expect(refused.stderr).toMatch(/node-z does not see its mark file: mount its disk there/);
      // The worker looks at its pools every few seconds, and would not let go of this one.
      const [{ id, tenant_id: tenantId }] = (await line.house.query(
        "SELECT b.id, b.tenant_id FROM trivet.backend b JOIN trivet.tenant t ON t.id = b.tenant_id WHERE t.name = 'acme' AND b.name = 'local'",
      )) as [{ id: string; tenant_id: string }];
      const of = { backend: id, name: pool, path: '/srv/pool' };
      await host('node-y', { absent: [of] });
      await host('node-z', { foreign: [{ ...of, home: 'node-y' }] });
      await line.house.query("UPDATE trivet.pool_home SET host = 'node-y' WHERE tenant_id = $1", [tenantId]);
      expect(await trivet([...args, '--reason', 'its disk went'])).toBe(
        `pool ${pool} is on node-z now, and was on node-y; 0 shares went along, 0 operations go on there\n`,
      );
      expect(await trivet(args)).toBe(`pool ${pool} is on node-z already\n`);
      const [entry] = (await json(['audit', 'list', '--action', 'pool.move'])).items;
      expect(entry).toMatchObject({ action: 'pool.move', before: { host: 'node-y' }, after: { host: 'node-z' } });
      await line.house.query("DELETE FROM trivet.pool_home WHERE host LIKE 'node-%'");
      await line.house.query("DELETE FROM trivet.storage_host WHERE name LIKE 'node-%'");
    });
  });
}
