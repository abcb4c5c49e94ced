import { createHash, randomBytes } from 'node:crypto';
import type { ScsiDisk } from '#backends/tgt/scsi-disk';
import { EXIT } from '../api/api-error.js';
import { isZero } from '../backup/block-sums.js';
import { BLOCK, CHUNK } from '../backup/changed-chunks.js';
import type { Progress } from '../backup/progress.js';
import { forgetReader, isComplete, type ReaderNames, type VolumeReply } from '../backup/snapshot-disk.js';
import { attach } from '../csp/attach.js';
import type { ReaderApi } from '../csp/reader-api.js';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import type { ImageInput } from './image-input.js';

/** One SCSI command carries no more. */
const COMMAND_BYTES = 256 * 1024;

export interface ImportOptions {
  image: ImageInput;
  /** Of the new volume. */
  name: string;
  pool?: string;
  progress: Progress;
  signal: AbortSignal;
}

type Disk = Pick<ScsiDisk, 'write' | 'read' | 'flush'>;

/** A range that was written, in bytes. */
interface Run {
  offset: number;
  length: number;
}

/**
 * A new volume with the content of an image, written as any host writes a volume: so size, quota and promises are checked
 * as for every other. It has a name of its own until everything was read back; what an import that was killed left is
 * removed by the next one of the same name.
 */
export async function runImport(api: ReaderApi, options: ImportOptions): Promise<VolumeReply> {
  const { image, name, pool, signal } = options;
  // Said at the end too, after the copy.
  if (!/^[^\p{Cc}]{1,255}$/u.test(name) || name.trim() === '')
    throw new LauncherError('--name: expected 1 to 255 characters, none of them for control', EXIT.data);
  if (await api.find(`volumes?name=${encodeURIComponent(name)}`))
    throw new LauncherError(`a volume is named ${name} already: choose another name`);
  const stem = `importing-${createHash('sha256').update(name).digest('hex').slice(0, 12)}`;
  const names: ReaderNames = { clone: `${stem}-${randomBytes(4).toString('hex')}`, hostName: stem, hostUuid: stem };
  const all = await api.csp<VolumeReply[]>('GET', 'volumes');
  for (const left of all.filter(volume => volume.name.startsWith(`${stem}-`)))
    await api
      .csp('PUT', `volumes/${left.id}/actions/unpublish`, { host_uuid: names.hostUuid })
      .then(() => api.csp('DELETE', `volumes/${left.id}`));
  try {
    const made = await api.csp<VolumeReply>('POST', 'volumes', {
      name: names.clone,
      size: image.sizeBytes,
      description: `unfinished import of ${name}`.slice(0, 200),
      config: { destroy_on_delete: true, ...(pool === undefined ? {} : { pool }) },
    });
    await isComplete(api, made.id, signal);
    const disk = await attach(api, made.id, names);
    try {
      await copy(disk, options);
    } finally {
      if (disk.isOpen) await disk.close().catch(() => {});
      options.progress.end();
    }
    await api.csp('PUT', `volumes/${made.id}/actions/unpublish`, { host_uuid: names.hostUuid });
    signal.throwIfAborted();
    // One transaction, and a repeat of it is recognised: the volume has its name with all of its content, or not at all.
    return await api.csp<VolumeReply>('POST', 'volumes', {
      name,
      size: image.sizeBytes,
      description: `imported from ${image.name}`.slice(0, 200),
      config: { import_volume_name: names.clone, destroy_on_delete: false },
    });
  } finally {
    await forgetReader(api, names).catch(() => {});
  }
}

/** Zeros are not written: a new volume has them. What was written is read back and compared. */
export async function copy(
  disk: Disk,
  { image, progress, signal }: Pick<ImportOptions, 'image' | 'progress' | 'signal'>,
): Promise<void> {
  const runs: Run[] = [];
  const given = createHash('sha256');
  let at = 0;
  let moved = 0;
  for await (const chunk of image.chunks(signal)) {
    signal.throwIfAborted();
    const written = dataOf(chunk);
    await Promise.all(
      written.flatMap(({ offset, length }) =>
        pieces(offset, length).map(piece =>
          disk.write(at + piece.offset, chunk.subarray(piece.offset, piece.offset + piece.length)),
        ),
      ),
    );
    for (const { offset, length } of written) {
      given.update(chunk.subarray(offset, offset + length));
      join(runs, { offset: at + offset, length });
      moved += length;
    }
    at += chunk.length;
    progress.show(at, image.sizeBytes, moved);
  }
  await disk.flush();
  if (given.digest('hex') !== (await sumOfDisk(disk, runs, signal)))
    throw new LauncherError(
      `the volume does not hold what ${humanBytes(moved)} were written to it: import it again`,
      EXIT.software,
    );
}

/** Whole blocks that are not zeros, neighbours together. */
function dataOf(chunk: Buffer): Run[] {
  const runs: Run[] = [];
  for (let offset = 0; offset < chunk.length; offset += BLOCK) {
    const block = chunk.subarray(offset, offset + BLOCK);
    if (!isZero(block)) join(runs, { offset, length: block.length });
  }
  return runs;
}

function join(runs: Run[], run: Run): void {
  const last = runs.at(-1);
  if (last && last.offset + last.length === run.offset) last.length += run.length;
  else runs.push(run);
}

const pieces = (offset: number, length: number, most = COMMAND_BYTES): Run[] =>
  Array.from({ length: Math.ceil(length / most) }, (_, n) => ({
    offset: offset + n * most,
    length: Math.min(most, length - n * most),
  }));

async function sumOfDisk(disk: Disk, runs: readonly Run[], signal: AbortSignal): Promise<string> {
  const found = createHash('sha256');
  for (const run of runs)
    for (let at = 0; at < run.length; at += CHUNK) {
      signal.throwIfAborted();
      const part = pieces(run.offset + at, Math.min(CHUNK, run.length - at));
      for (const data of await Promise.all(part.map(({ offset, length }) => disk.read(offset, length))))
        found.update(data);
    }
  return found.digest('hex');
}
