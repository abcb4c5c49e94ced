import { open } from 'node:fs/promises';
import type { ImageRef } from '#backends/block-backend';
import type { BlockHouse } from '#test/block-storage/block-house';

const BLOCK = 4096;

/** Images of a house, by what an initiator would write and read. */
export class ImageContent {
  constructor(private readonly house: BlockHouse) {}

  /** A block full of `mark`. */
  async write(volumeId: string, block: number, mark: number): Promise<void> {
    const file = await open(this.path('volume', volumeId), 'r+');
    try {
      await file.write(Buffer.alloc(BLOCK, mark), 0, BLOCK, block * BLOCK);
    } finally {
      await file.close();
    }
  }

  /** The mark of each of the first blocks. */
  async read(kind: ImageRef['kind'], id: string, blocks: number): Promise<number[]> {
    const file = await open(this.path(kind, id), 'r');
    try {
      const { buffer } = await file.read(Buffer.alloc(blocks * BLOCK), 0, blocks * BLOCK, 0);
      return Array.from({ length: blocks }, (_, block) => buffer[block * BLOCK]!);
    } finally {
      await file.close();
    }
  }

  inspect(kind: ImageRef['kind'], id: string) {
    return this.house.store.volumes.inspectImage(this.ref(kind, id), AbortSignal.timeout(5_000));
  }

  path(kind: ImageRef['kind'], id: string): string {
    return this.house.store.volumes.pathOf(this.ref(kind, id));
  }

  private ref(kind: ImageRef['kind'], id: string): ImageRef {
    return { pool: 'default', kind, id, folder: '' };
  }
}
