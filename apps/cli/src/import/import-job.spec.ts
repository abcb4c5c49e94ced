import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { Progress } from '../backup/progress.js';
import { ImageInput } from './image-input.js';
import { copy } from './import-job.js';

const MIB = 1024 ** 2;
const progress = new Progress('import', { write: () => undefined });
const { signal } = new AbortController();

/** A disk that keeps what `keeps` lets it. */
function diskOf(keeps: (offset: number) => boolean) {
  const content = Buffer.alloc(3 * MIB);
  const commands: number[] = [];
  return {
    content,
    commands,
    write: async (offset: number, data: Buffer | number) => {
      if (typeof data === 'number') throw new Error('expected bytes');
      commands.push(data.length);
      if (keeps(offset)) data.copy(content, offset);
    },
    read: async (offset: number, length: number) => content.subarray(offset, offset + length),
    flush: async () => {},
  };
}

const image = async () => {
  const content = Buffer.concat([Buffer.alloc(MIB), Buffer.alloc(MIB + 512, 7), Buffer.alloc(MIB - 512)]);
  return { content, image: await ImageInput.of('-', content.length, Readable.from([content])) };
};

it('writes what is there in commands of at most 256 KiB, and leaves zeros out', async () => {
  const { content, image: input } = await image();
  const disk = diskOf(() => true);
  await copy(disk, { image: input, progress, signal });
  expect(disk.content.equals(content)).toBe(true);
  expect(Math.max(...disk.commands)).toBe(256 * 1024);
  expect(disk.commands.reduce((sum, bytes) => sum + bytes)).toBe(MIB + 64 * 1024);
});

it('notices a write that the disk has lost', async () => {
  const { image: input } = await image();
  const disk = diskOf(offset => offset !== MIB + 256 * 1024);
  await expect(copy(disk, { image: input, progress, signal })).rejects.toThrow('does not hold');
});
