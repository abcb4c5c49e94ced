import { describe, expect, it } from 'vitest';
import { ended } from '#test/admin/resource-calls';
import { type CommandLine, rows } from './command-line.js';

/** What is done to many at once, and how lists are seen again. */
export function describeBulk(line: CommandLine): void {
  const { run, trivet, json } = line;
  const acme = ['--tenant', 'acme'];

  describe('a bulk by the command line', () => {
    it('deletes all that the filters match, and says what stayed and why', async () => {
      for (const name of ['ci-1', 'ci-2']) await trivet(['volume', 'create', name, '--size', '1MiB', ...acme]);
      await trivet(['snapshot', 'create', 'ci-2', 'holds', ...acme]);
      const matching = ['bulk', 'delete-volumes', '--all-matching', '--search', 'ci-', ...acme];
      expect(await run(matching)).toMatchObject({
        code: 65,
        stderr: expect.stringContaining('2 volumes of tenant acme'),
      });
      const { operation, count } = await json([...matching, '--yes', '--reason', 'a test']);
      expect(count).toBe(2);
      expect(await ended(line.house, operation)).toBe('succeeded');
      expect(await trivet(['operation', 'show', operation])).toMatch(
        /items: 1 of 2 done, 1 failed.*failed:\n {2}ci-2: volume ci-2 has 1 snapshot/s,
      );
      const failed = rows(await trivet(['bulk', 'items', operation, '--state', 'failed']));
      expect(failed.map(([, name, state]) => [name, state])).toEqual([['ci-2', 'failed']]);
      const none = ['bulk', 'delete-volumes', '--all-matching', '--search', 'no-such', ...acme, '--yes'];
      expect(await trivet(none)).toBe('no volume matches: nothing was done\n');
    });

    it('takes ids or filters, and neither both nor none', async () => {
      const id = '0198c0de-0000-7000-8000-000000000000';
      for (const wrong of [[], [id, '--all-matching'], [id, '--search', 'x']])
        expect(await run(['bulk', 'delete-volumes', ...wrong, ...acme, '--yes'])).toMatchObject({ code: 65 });
      const { operation } = await json(['bulk', 'retry-operations', id, ...acme]);
      await ended(line.house, operation);
      expect(await trivet(['bulk', 'items', operation])).toContain(`there is no operation ${id}`);
    });
  });

  it('a view of a list is saved, listed, renamed and forgotten', async () => {
    const { id } = await json([
      'view',
      'create',
      'largest',
      '--list',
      'volumes',
      '--query',
      'sort=-size',
      '--column',
      'Name',
    ]);
    await trivet(['view', 'change', id, '--name', 'the largest']);
    const [row] = rows(await trivet(['view', 'list', '--list', 'volumes']));
    expect(row).toEqual(['volumes', 'the largest', 'sort=-size', 'Name', id]);
    await trivet(['view', 'delete', id]);
    expect(await trivet(['view', 'list'])).toMatch(/^no saved views/);
  });
}
