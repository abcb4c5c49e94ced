import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BlockHouse, volumeRequest } from '#test/block-storage/block-house';
import { parts } from '#test/support/parts';

const MIB = 1024 ** 2;
/** Content that is nowhere zero. */
const content = (bytes: number, seed: number) =>
  Buffer.from(Uint8Array.from({ length: bytes }, (_, n) => ((n * 31 + seed) % 255) + 1));

let house: BlockHouse;
beforeAll(async () => {
  house = await BlockHouse.create({ under: parts().xfs!.path });
});
afterAll(() => house?.close());

const put = (name: string, bytes: Buffer): string => {
  const path = join(house.poolPath, 'import', name);
  writeFileSync(path, bytes);
  return path;
};
const { sizeBytes: _, ...unsized } = volumeRequest('');
const register = (name: string, image: string, changes = {}) =>
  house.volumes.create(house.caller(), { ...unsized, name, source: { image }, ...changes });
const bytesOf = (id: string) =>
  readFileSync(house.store.volumes.pathOf({ pool: 'default', kind: 'volume', id, folder: '' }));

describe('an image in the folder import of the pool', () => {
  it('becomes a volume of its size, by sharing its blocks, and stays as it is', async () => {
    const bytes = content(8 * MIB, 1);
    const path = put('whole.img', bytes);
    const { mtimeMs } = statSync(path);
    const made = await register('whole', 'whole.img');
    expect(made).toMatchObject({ name: 'whole', sizeBytes: BigInt(bytes.length), cloneOf: '', parentVolumeId: '' });
    expect(bytesOf(made.id).equals(bytes)).toBe(true);
    const extents = execFileSync('filefrag', ['-v', path]).toString();
    expect(extents).toContain('shared');
    expect([readFileSync(path).equals(bytes), statSync(path).mtimeMs]).toEqual([true, mtimeMs]);
    expect(await house.images()).not.toContainEqual(expect.objectContaining({ id: 'whole.img' }));
  });

  it('is answered once more, also when it is gone by then, and not under the name of another', async () => {
    const path = put('again.img', content(MIB, 2));
    const { id } = await register('again', 'again.img');
    expect((await register('again', 'again.img')).id).toBe(id);
    unlinkSync(path);
    expect((await register('again', 'again.img', { sizeBytes: BigInt(MIB) })).id).toBe(id);
    put('other.img', content(MIB, 3));
    await expect(register('again', 'other.img')).rejects.toMatchObject({ kind: 'already_exists' });
  });

  it('is grown to the size that is asked for, and never cut', async () => {
    const bytes = content(MIB, 4);
    put('grown.img', bytes);
    const { id } = await register('grown', 'grown.img', { sizeBytes: BigInt(3 * MIB) });
    expect(bytesOf(id).equals(Buffer.concat([bytes, Buffer.alloc(2 * MIB)]))).toBe(true);
    await expect(register('cut', 'grown.img', { sizeBytes: 512n })).rejects.toMatchObject({ field: 'size' });
  });

  it('is refused when it is not there, no whole number of blocks, a link, or a path', async () => {
    put('odd.img', content(MIB + 1, 5));
    symlinkSync('/etc/passwd', join(house.poolPath, 'import', 'link.img'));
    await expect(register('none', 'none.img')).rejects.toMatchObject({
      kind: 'invalid_argument',
      field: 'image',
      message: `image: there is no image none.img in the folder import of pool default (${join(house.poolPath, 'import')})`,
    });
    await expect(register('odd', 'odd.img')).rejects.toMatchObject({ kind: 'invalid_argument', field: 'size' });
    await expect(register('link', 'link.img')).rejects.toMatchObject({ kind: 'failed_precondition' });
    for (const path of ['../volumes/x', '/etc/passwd', '..', ''])
      await expect(register('path', path), path).rejects.toMatchObject({ kind: 'invalid_argument', field: 'image' });
    for (const name of ['none', 'odd', 'link', 'path'])
      expect(await house.volumes.find(house.caller(), name)).toBeUndefined();
  });
});

describe('the name of an import', () => {
  it('is that of a volume first, else that of an image', async () => {
    put('both', content(MIB, 6));
    const { id } = await house.volume('both');
    const named = { ...unsized, config: { import_volume_name: 'both' } };
    expect((await house.volumes.import(house.caller(), 'both', { ...named, name: 'of-volume' })).id).toBe(id);
    const of = await house.volumes.import(house.caller(), 'both', { ...named, name: 'of-image' });
    expect(bytesOf(of.id).equals(content(MIB, 6))).toBe(true);
    expect((await house.volumes.import(house.caller(), 'both', { ...named, name: 'of-image' })).id).toBe(of.id);
    await expect(house.volumes.import(house.caller(), 'neither', { ...named, name: 'none' })).rejects.toMatchObject({
      kind: 'invalid_argument',
      field: 'imported',
      message: expect.stringMatching(/neither a volume .* nor an image .* is named "neither"/),
    });
  });
});
