import type { VolumeView } from '#storage/block/block-storage';

export const PAGE = 100;

const view = (n: number): VolumeView => ({
  id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
  name: `pvc-${n}`,
  sizeBytes: 1073741824n,
  usedBytes: 0n,
  description: '',
  published: false,
  volumeGroupId: '',
  baseSnapshotId: '',
  parentVolumeId: '',
  cloneOf: '',
  pool: 'default',
  folder: '',
  thick: false,
  destroyOnDelete: false,
  config: { padding: 'x'.repeat(2_000) },
  ready: true,
  createdAt: new Date(),
});

/** Volumes in pages, made as they are asked for. */
export async function* manyVolumes(count: number, onPage: () => void = () => {}): AsyncGenerator<VolumeView[]> {
  for (let at = 0; at < count; at += PAGE) {
    onPage();
    yield Array.from({ length: Math.min(PAGE, count - at) }, (_, n) => view(at + n));
  }
}
