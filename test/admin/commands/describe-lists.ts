import { describe, expect, it } from 'vitest';
import { driverOf } from '#test/admin/resource-calls';
import { type CommandLine, rows } from './command-line.js';

/** What lists have in common: all tenants in one, and other forms than a table. */
export function describeLists(line: CommandLine): void {
  const { run, trivet, json } = line;

  describe('the lists of volumes, snapshots and hosts', () => {
    it('have what all tenants have, with whose each is', async () => {
      for (const name of ['acme', 'beta'] as const) {
        const of = ['--tenant', name];
        await trivet(['volume', 'create', 'of-both', '--size', '1MiB', ...of]);
        await trivet(['snapshot', 'create', 'of-both', 'cut-of-both', ...of]);
        const host = { uuid: `uuid-${name}`, name: 'node-of-both', wwpns: [], nqns: [], networks: [] };
        const caller = await driverOf(line.house, line.house[name]);
        await line.house.parts.blockStorage.hosts.put(caller, { ...host, iqns: [`iqn.2026-01.org.example:${name}`] });
      }
      for (const [list, found] of [
        ['volume list --search of-both', 'of-both'],
        ['snapshot list --search cut-of-both', 'cut-of-both'],
        ['host list --search node-of-both', 'node-of-both'],
      ] as const) {
        const cells = rows(await trivet([...list.split(' '), '--all-tenants']));
        expect(cells.map(row => row.slice(0, 2)).sort()).toEqual([
          ['acme', found],
          ['beta', found],
        ]);
      }
      const { items } = await json(['bucket', 'list', '--all-tenants']);
      expect(items).toEqual([]);
      const { items: binned } = await json(['volume', 'bin', '--all-tenants']);
      expect(binned.map(({ name }: { name: string }) => name)).not.toContain('of-both');
    });

    it('of a volume takes its id there, and refuses what does not go together, and users of a tenant', async () => {
      const { items } = await json(['volume', 'list', '--all-tenants', '--search', 'of-both']);
      const [{ id, tenant }] = items;
      const cuts = await json(['snapshot', 'list', '--all-tenants', '--volume', id]);
      expect(cuts.items).toMatchObject([{ tenant, volume: { id } }]);
      expect(await run(['snapshot', 'list', '--all-tenants', '--volume', 'of-both'])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('--volume takes an id with --all-tenants'),
      });
      expect(await run(['volume', 'list', '--all-tenants', '--tenant', 'acme'])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('give one of the two'),
      });
      expect(await run(['volume', 'list', '--all-tenants'], { who: line.house.acme.admin })).toMatchObject({
        code: 77,
        stdout: '',
      });
    });

    it('are searched by the beginning of a name, for who sees all and for who sees one', async () => {
      const cells = rows(await trivet(['search', 'of-bo']));
      expect(cells.map(([kind, , tenant]) => [kind, tenant]).sort()).toEqual([
        ['volume', 'acme'],
        ['volume', 'beta'],
      ]);
      const own = await json(['search', 'of-bo'], { who: line.house.acme.viewer });
      expect(own.items).toMatchObject([{ kind: 'volume', name: 'of-both', tenant: 'acme' }]);
      expect(await trivet(['search', 'nobody-has-it'])).toMatch(/^nothing that you may see begins with nobody-has-it/);
      const few = await run(['search', 'of-bo', '--limit', '1']);
      expect(few).toMatchObject({ code: 0, stderr: 'trivet: there are more of the kinds volume\n' });
    });

    it('come as CSV, a column for each field; how many are missing is said beside it', async () => {
      const list = ['volume', 'list', '--all-tenants', '--search', 'of-both', '--output', 'csv'];
      const [head, ...lines] = (await trivet(list)).trimEnd().split('\r\n');
      expect(head).toMatch(/^id,name,backend,pool,.*,createdAt,updatedAt,tenant$/);
      expect(lines.map(text => text.split(',').at(-1)).sort()).toEqual(['acme', 'beta']);
      const one = await run([...list, '--limit', '1']);
      expect(one).toMatchObject({ code: 0, stderr: 'trivet: the first 1 alone; --limit gives more\n' });
      expect(one.stdout.trimEnd().split('\r\n')).toHaveLength(2);
      expect(await trivet(['tenant', 'list', '--output', 'csv'])).toMatch(/^name,displayName,/);
      expect(JSON.parse(await trivet(['volume', 'list', '--output', 'json', '--tenant', 'acme']))).toHaveProperty(
        'items',
      );
      expect(await run(['volume', 'list', '--output', 'xml'])).toMatchObject({ code: 2 });
    });
  });
}
