import { describe, expect, it } from 'vitest';
import { type CommandLine, rows } from './command-line.js';

const OF_ACME = ['--tenant', 'acme'];
const MIB = 1_048_576;

/** Volumes and their snapshots, from the first to the last verb. */
export function describeVolumes(line: CommandLine): void {
  const { run, trivet, json } = line;
  const refusals = async (wrong: readonly [string[], number, string][]) => {
    const ended = await Promise.all(wrong.map(([args]) => run([...args, ...OF_ACME])));
    expect(ended).toMatchObject(
      wrong.map(([, code, said]) => ({ code, stdout: '', stderr: expect.stringContaining(said) })),
    );
  };

  describe('trivet volume', () => {
    it('makes, shows, changes, clones and deletes one, by its name or id', async () => {
      const made = await json(['volume', 'create', 'shop', '--size', '1MiB', '--description', 'orders', ...OF_ACME]);
      expect(made).toMatchObject({ name: 'shop', size: String(MIB), state: 'ready', description: 'orders' });
      const grown = await trivet(['volume', 'change', 'shop', '--size', '2MiB', ...OF_ACME]);
      expect(grown).toBe('shop is changed, 2 MiB\n');
      const [template] = (await json(['protection', 'list', ...OF_ACME])).items;
      await trivet(['volume', 'change', made.id, '--protection', template.name, ...OF_ACME]);
      const shown = await trivet(['volume', 'show', 'shop', ...OF_ACME]);
      expect(shown).toMatch(/^size +2 MiB \(2097152 bytes\)$/m);
      expect(shown).toMatch(new RegExp(`^protection +${template.name}$`, 'm'));
      expect(await json(['volume', 'change', 'shop', '--unprotected', ...OF_ACME])).toMatchObject({
        protectionTemplate: null,
        description: 'orders',
      });
      const clone = await trivet(['volume', 'clone', 'shop', 'shop-copy', ...OF_ACME]);
      expect(clone).toMatch(/^shop-copy \([0-9a-f-]{36}\) is a clone of shop\n$/);
      expect(await json(['volume', 'show', 'shop-copy', ...OF_ACME])).toMatchObject({ size: String(2 * MIB) });

      expect(await trivet(['volume', 'delete', 'shop-copy', '--yes', ...OF_ACME])).toBe(
        'shop-copy is deleted; `trivet volume bin` shows what can still be restored\n',
      );
      expect(await json(['volume', 'delete', made.id, '--yes', ...OF_ACME])).toEqual({
        id: made.id,
        name: 'shop',
        state: 'deleted',
        operation: null,
      });
      // It is in the recycle bin; a second time it goes for good, by its id alone.
      await refusals([[['volume', 'delete', 'shop', '--yes'], 1, 'there is no volume shop in tenant acme']]);
      await trivet(['volume', 'delete', made.id, '--yes', ...OF_ACME]);
      await refusals([[['volume', 'show', made.id], 1, made.id]]);
    });

    it('refuses what is wrong, and says what to give', async () => {
      await trivet(['volume', 'create', 'kept-as-is', '--size', '1MiB', ...OF_ACME]);
      await refusals([
        [['volume', 'create', 'x'], 2, '--size is missing'],
        [['volume', 'create', 'x', '--size', 'big'], 2, '--size big: expected bytes, e.g. 10GiB'],
        [['volume', 'create', 'kept-as-is', '--size', '1MiB'], 1, 'there is a volume kept-as-is already'],
        [
          ['volume', 'create', 'x', '--size', '1MiB', '--backend', 'tape'],
          65,
          'backend: none of block volumes is named tape',
        ],
        [['volume', 'change', 'kept-as-is'], 65, 'nothing to change: give --size'],
        [['volume', 'change', 'kept-as-is', '--protection', 'a', '--unprotected'], 65, 'give one of the two'],
        [['volume', 'change', 'kept-as-is', '--size', '1KiB'], 65, 'size'],
        [['volume', 'clone', 'absent', 'y'], 1, 'there is no volume absent in tenant acme (trivet volume list'],
        [['volume', 'clone', 'kept-as-is', 'y', '--snapshot', 'absent'], 1, 'there is no snapshot absent'],
        [['volume', 'delete', 'kept-as-is'], 65, 'is deleted: give --yes to do it'],
      ]);
      expect(await json(['volume', 'show', 'kept-as-is', ...OF_ACME])).toMatchObject({ state: 'ready' });
      const who = line.house.acme.operator;
      expect(await run(['volume', 'delete', 'kept-as-is', '--yes'], { who })).toMatchObject({ code: 77 });
      await trivet(['volume', 'delete', 'kept-as-is', '--yes', ...OF_ACME]);
    });
  });

  it('trivet snapshot takes, lists, shows and deletes them; of several of one name it asks which', async () => {
    for (const name of ['left', 'right']) {
      await trivet(['volume', 'create', name, '--size', '1MiB', ...OF_ACME]);
      expect(await trivet(['snapshot', 'create', name, 'monday', ...OF_ACME])).toMatch(
        new RegExp(`^monday \\([0-9a-f-]{36}\\) is taken of ${name}\n$`),
      );
    }
    const tuesday = await json(['snapshot', 'create', 'left', 'tuesday', '--description', 'x', ...OF_ACME]);
    const cells = rows(await trivet(['snapshot', 'list', '--volume', 'left', ...OF_ACME]));
    expect(cells.map(([name, volume]) => [name, volume])).toEqual([
      ['monday', 'left'],
      ['tuesday', 'left'],
    ]);
    const { items } = await json(['snapshot', 'list', '--search', 'monday', ...OF_ACME]);
    expect(items).toHaveLength(2);
    expect(await trivet(['snapshot', 'show', tuesday.id, ...OF_ACME])).toMatch(/^volume +left \(/m);
    const clone = await json(['volume', 'clone', 'left', 'left-then', '--snapshot', 'monday', ...OF_ACME]);
    expect(clone).toMatchObject({ state: 'ready', cloneOf: 'left' });
    await refusals([
      [['snapshot', 'show', 'monday'], 65, '2 are called monday: say the id of one, '],
      [['snapshot', 'show', 'wednesday'], 1, 'there is no snapshot wednesday in tenant acme'],
      [['snapshot', 'create', 'left', 'tuesday'], 1, 'volume left has a snapshot tuesday already'],
      [['snapshot', 'create', 'absent', 'x'], 1, 'there is no volume absent'],
      [['snapshot', 'delete', 'tuesday'], 65, 'of volume left is deleted for good: give --yes to do it'],
    ]);
    const which = await run(['snapshot', 'delete', 'monday', '--yes', ...OF_ACME]);
    expect(which.stderr).toMatch(/of volume left, .* of volume right|of volume right, .* of volume left/);
    expect(await trivet(['snapshot', 'delete', 'monday', '--volume', 'right', '--yes', ...OF_ACME])).toBe(
      'monday is deleted\n',
    );
    expect(await json(['snapshot', 'delete', tuesday.id, '--yes', ...OF_ACME])).toMatchObject({
      name: 'tuesday',
      state: 'deleted',
    });
    await trivet(['volume', 'delete', 'left', '--force', '--yes', ...OF_ACME]);
    expect((await json(['snapshot', 'list', ...OF_ACME])).items).toEqual([]);
    expect(await trivet(['snapshot', 'list', ...OF_ACME])).toBe(
      'no snapshots yet: trivet snapshot create VOLUME NAME\n',
    );
  });
}
