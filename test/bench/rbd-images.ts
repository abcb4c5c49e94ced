import { randomUUID } from 'node:crypto';
import type { ImageRef, StageContent } from '#backends/block-backend';
import { unleased } from '#platform/lease-signal';
import type { RbdHarness } from '#test/block-backend/rbd-harness';

const soon = () => unleased(AbortSignal.timeout(120_000));

/** Images by our backend, as the handlers of operations make them: staged, then named. */
export class BackendImages {
  private fence = 0;

  constructor(private readonly harness: RbdHarness) {}

  async make(kind: 'volume' | 'snapshot', content: StageContent): Promise<ImageRef> {
    const { backend, pool } = this.harness;
    const image: ImageRef = { pool, kind, id: randomUUID(), folder: '' };
    const stage = { pool, imageId: image.id, operationId: randomUUID(), fence: String(++this.fence) };
    await backend.stage(stage, content, soon());
    await backend.commit(stage, image, { readOnly: kind === 'snapshot' }, soon());
    return image;
  }

  empty(size: number): Promise<ImageRef> {
    return this.make('volume', { kind: 'empty', sizeBytes: BigInt(size), thick: false });
  }

  copy(kind: 'volume' | 'snapshot', source: ImageRef): Promise<ImageRef> {
    return this.make(kind, { kind: 'copy', source, thick: false });
  }

  grow(image: ImageRef, size: number): Promise<void> {
    return this.harness.backend.growImage(
      image,
      { sizeBytes: BigInt(size), thick: false },
      String(++this.fence),
      soon(),
    );
  }

  remove(image: ImageRef): Promise<void> {
    return this.harness.backend.removeImage(image, String(++this.fence), soon());
  }
}
