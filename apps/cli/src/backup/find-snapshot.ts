import type { ReaderApi } from '../csp/reader-api.js';

export interface SnapshotReply {
  id: string;
  name: string;
  /** Of its volume when it was taken, bytes. */
  size: number;
  volume_id: string;
}

/** By id, else by name. */
export async function findSnapshots(api: ReaderApi, wanted: string): Promise<SnapshotReply[]> {
  const key = encodeURIComponent(wanted);
  const found = await api.find<SnapshotReply>(`snapshots/${key}`);
  return found ? [found] : ((await api.find<SnapshotReply[]>(`snapshots?name=${key}`)) ?? []);
}
