import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HostFences } from '#backends/host-fence';

describe('fences of a host', () => {
  let folder: string;
  let fences: HostFences;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'trivet-fence-'));
    fences = new HostFences(join(folder, 'fences'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('lets a fence repeat and grow, and refuses a lower one, also by its number of digits', async () => {
    await fences.enter('a', '9');
    await fences.enter('a', '9');
    await fences.enter('a', '10');
    await expect(fences.enter('a', '9')).rejects.toMatchObject({ kind: 'aborted', retry: 'later' });
    await fences.enter('a', '9223372036854775807');
    await expect(fences.enter('a', '11')).rejects.toMatchObject({ kind: 'aborted' });
  });

  it('is shared with other processes by its folder alone', async () => {
    await fences.enter('b', '5');
    const other = new HostFences(join(folder, 'fences'));
    await expect(other.enter('b', '4')).rejects.toMatchObject({ kind: 'aborted' });
    await other.enter('b', '6');
    await expect(fences.enter('b', '5')).rejects.toMatchObject({ kind: 'aborted' });
  });

  it('keeps resources apart whatever their names hold, and forgets', async () => {
    const names = ['iqn.2026-01.dev.trivet:a/b', 'iqn.2026-01.dev.trivet:a', '../../x'];
    for (const name of names) await fences.enter(name, '7');
    await fences.forget(names[0]!);
    await fences.enter(names[0]!, '1');
    await expect(fences.enter(names[1]!, '1')).rejects.toMatchObject({ kind: 'aborted' });
    expect(readdirSync(folder)).not.toContain('x');
  });

  it('forgets what nobody entered for long, and nothing else', async () => {
    const own = new HostFences(join(folder, 'pruned'));
    await own.enter('old', '9');
    const [old] = readdirSync(join(folder, 'pruned'));
    utimesSync(join(folder, 'pruned', old!), 1, 1);
    await own.enter('new', '9');
    await own.prune(60_000);
    await own.enter('old', '1');
    await expect(own.enter('new', '1')).rejects.toMatchObject({ kind: 'aborted' });
    await new HostFences(join(folder, 'never made')).prune(1);
  });

  it('never goes back when many enter at once', async () => {
    const order = Array.from({ length: 40 }, (_, n) => String(((n * 17) % 40) + 1));
    const results = await Promise.allSettled(order.map(fence => fences.enter('c', fence)));
    expect(results[order.indexOf('40')]).toMatchObject({ status: 'fulfilled' });
    await expect(fences.enter('c', '39')).rejects.toMatchObject({ kind: 'aborted' });
    await fences.enter('c', '40');
  });

  it('says unavailable when its folder cannot be used', async () => {
    writeFileSync(join(folder, 'file'), '');
    await expect(new HostFences(join(folder, 'file')).enter('a', '1')).rejects.toMatchObject({ kind: 'unavailable' });
  });

  it('takes nothing but a decimal number for a fence', async () => {
    for (const bad of ['', '-1', '1e3', '1 ', '99999999999999999999'])
      await expect(fences.enter('d', bad)).rejects.toMatchObject({ kind: 'internal' });
  });
});
