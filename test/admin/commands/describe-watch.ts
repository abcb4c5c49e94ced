import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { idOf, makeVolume } from '#test/admin/resource-calls';
import { until } from '#test/support/parts';
import { type CommandLine, MAIN } from './command-line.js';

/** Lists and objects that say what changes. */
export function describeWatch(line: CommandLine): void {
  describe('--watch', () => {
    const watching = (...args: string[]) => {
      const child = spawn(process.execPath, [MAIN, ...args], {
        env: line.environment(line.house.root.admin),
        stdio: 'pipe',
      });
      const said = { out: '', err: '' };
      child.stdout.on('data', chunk => {
        said.out += String(chunk);
      });
      child.stderr.on('data', chunk => {
        said.err += String(chunk);
      });
      return { child, said };
    };

    it('prints a line for each row that changes, and ends by Ctrl-C without an error', async () => {
      const { house } = line;
      const { child, said } = watching('volume', 'list', '--search', 'watched', '--tenant', 'acme', '--watch');
      try {
        let n = 0;
        // Until it follows, nobody knows from when on: another one is made until it says so.
        await until('a volume was told of', async () => {
          await makeVolume(house, house.acme, `watched-${n++}`);
          return said.out.includes('watched-');
        });
        const [row] = await house.query<{ id: string }>(
          "SELECT id FROM trivet.volume WHERE name = 'watched-0' AND state <> 'gone'",
        );
        await house.change(house.acme.admin, 'DELETE', `/tenants/acme/volumes/${row!.id}`);
        await until('its end was told', async () => /^gone {2}.*watched-0/m.test(said.out));
        // Once, for all that did not change.
        expect(said.out.match(/^(?!gone).*watched-0 /gm)?.length).toBeLessThanOrEqual(2);
        child.kill('SIGINT');
        await once(child, 'exit');
        expect({ code: child.exitCode, err: said.err }).toEqual({ code: 0, err: '' });
      } finally {
        child.kill('SIGKILL');
      }
    });

    it('shows an operation to its end, an object a line with --json', async () => {
      const { house } = line;
      const volume = idOf(await makeVolume(house, house.acme, 'of-an-operation'));
      const { items } = JSON.parse(
        await line.trivet(['operation', 'list', '--resource', volume, '--tenant', 'acme', '--json']),
      );
      const shown = await line.trivet(['operation', 'show', items[0].id, '--watch', '--json']);
      const last = JSON.parse(shown.trimEnd().split('\n').at(-1)!);
      expect(last).toMatchObject({ id: items[0].id, finishedAt: expect.any(String) });
    });

    it('refuses what it cannot do', async () => {
      const csv = await line.run(['volume', 'list', '--tenant', 'acme', '--watch', '--output', 'csv']);
      expect(csv).toMatchObject({ code: 2, stderr: expect.stringContaining('--watch shows a table') });
    });
  });
}
