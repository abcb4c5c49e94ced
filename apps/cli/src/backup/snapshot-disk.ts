import { setTimeout as delay } from 'node:timers/promises';
import type { ScsiDisk } from '#backends/tgt/scsi-disk';
import { attach, type ToolHost } from '../csp/attach.js';
import type { ReaderApi } from '../csp/reader-api.js';
import { LauncherError } from '../home.js';

const SECTOR = 512;
const READ_BYTES = 256 * 1024;
const POLL_MS = 500;
/** A copying pool takes as long as its data. */
const CLONE_MS = 6 * 3_600_000;

export interface VolumeReply {
  id: string;
  name: string;
  size: number;
  config: Record<string, unknown>;
}

/** What a reader leaves at the appliance, found again by these names after a crash. */
export interface ReaderNames extends ToolHost {
  /** Of the clone. */
  clone: string;
}

/**
 * The content of a snapshot, read as any host reads a volume: a clone of it, published to a host of our own, over iSCSI.
 */
export class SnapshotDisk {
  private constructor(
    private readonly disk: ScsiDisk,
    /** What a host can read: whole sectors. */
    private readonly readable: number,
    private readonly names: ReaderNames,
    private readonly api: ReaderApi,
  ) {}

  static async open(
    api: ReaderApi,
    snapshotId: string,
    names: ReaderNames,
    signal: AbortSignal,
  ): Promise<SnapshotDisk> {
    await forgetReader(api, names);
    try {
      const clone = await api.csp<VolumeReply>('POST', 'volumes', {
        name: names.clone,
        clone: true,
        base_snapshot_id: snapshotId,
        config: { destroy_on_delete: true },
      });
      await isComplete(api, clone.id, signal);
      signal.throwIfAborted();
      const disk = await attach(api, clone.id, names);
      return new SnapshotDisk(disk, await disk.capacity(), names, api);
    } catch (error) {
      await forgetReader(api, names).catch(() => {});
      throw error;
    }
  }

  /** Zeros beyond what a host can read: nobody can have written there. */
  async read(offset: number, length: number): Promise<Buffer> {
    const content = Buffer.alloc(length);
    const end = Math.min(offset + length, this.readable - (this.readable % SECTOR));
    const pieces: Promise<void>[] = [];
    for (let at = offset; at < end; at += READ_BYTES) {
      const size = Math.min(READ_BYTES, end - at);
      pieces.push(
        this.disk.read(at, size).then(data => {
          if (data.length !== size) throw new LauncherError(`the target gave ${data.length} bytes of ${size} at ${at}`);
          data.copy(content, at - offset);
        }),
      );
    }
    await Promise.all(pieces);
    return content;
  }

  async close(): Promise<void> {
    if (this.disk.isOpen) await this.disk.close().catch(() => {});
    await forgetReader(this.api, this.names);
  }
}

/** Removes clone and host, whatever of them is there. */
export async function forgetReader(api: ReaderApi, { clone, hostUuid }: ReaderNames): Promise<void> {
  const [found] = (await api.find<VolumeReply[]>(`volumes?name=${clone}`)) ?? [];
  if (found) {
    await api.csp('PUT', `volumes/${found.id}/actions/unpublish`, { host_uuid: hostUuid });
    await api.csp('DELETE', `volumes/${found.id}`);
  }
  const hosts = await api.csp<unknown[]>('GET', `hosts?uuid=${hostUuid}`);
  if (hosts.length > 0) await api.csp('DELETE', `hosts/${hostUuid}`);
}

/** Made: a copying pool takes as long as its data. */
export async function isComplete(api: ReaderApi, volumeId: string, signal: AbortSignal): Promise<void> {
  for (const end = Date.now() + CLONE_MS; ; ) {
    const volume = await api.csp<VolumeReply>('GET', `volumes/${volumeId}`);
    if ((volume.config.background_operation_status ?? COMPLETED) === COMPLETED) return;
    if (Date.now() > end) throw new LauncherError('the clone of the snapshot does not become complete');
    await delay(POLL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

const COMPLETED = 'Completed';
