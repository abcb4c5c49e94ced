import { createReadStream, type Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { EXIT } from '../api/api-error.js';
import { BLOCK, CHUNK } from '../backup/changed-chunks.js';
import { LauncherError } from '../home.js';

const SECTOR = 512;

/** Containers of images: their own first bytes would be the disk's. */
const FORMATS: readonly [magic: string, name: string][] = [
  ['QFI\xfb', 'qcow2'],
  ['KDMV', 'vmdk'],
  ['vhdxfile', 'vhdx'],
  ['conectix', 'vhd'],
];

/** A raw image, from a file or a pipe: so many bytes, and not one more or less. */
export class ImageInput {
  private constructor(
    readonly name: string,
    readonly sizeBytes: number,
    private readonly open: () => Readable,
    /** Of a file, to see whether somebody changes it meanwhile. */
    private readonly look?: () => Promise<Stats>,
  ) {}

  static async of(file: string, sizeBytes: number | undefined, stdin: Readable): Promise<ImageInput> {
    if (file === '-') {
      if (sizeBytes === undefined) throw new LauncherError('--size: a pipe does not say how long it is', EXIT.data);
      return new ImageInput('what was piped in', whole('--size', sizeBytes), () => stdin);
    }
    const found = await stat(file).catch(() => undefined);
    if (!found) throw new LauncherError(`there is no ${file}`, EXIT.data);
    if (!found.isFile())
      throw new LauncherError(`${file} is no plain file: pipe it in, and give - and --size`, EXIT.data);
    if (sizeBytes !== undefined && sizeBytes !== found.size)
      throw new LauncherError(`--size: ${file} has ${found.size} bytes`, EXIT.data);
    const open = () => createReadStream(file, { highWaterMark: CHUNK });
    return new ImageInput(file, whole(file, found.size), open, () => stat(file));
  }

  /** Pieces of CHUNK, the last one shorter. Throws when these were not all, or not of one state of the file. */
  async *chunks(signal: AbortSignal): AsyncGenerator<Buffer> {
    const before = await this.look?.();
    let bytes = 0;
    let held: Buffer = Buffer.alloc(0);
    for await (const piece of pieces(this.open(), signal)) {
      held = held.length === 0 ? piece : Buffer.concat([held, piece]);
      if (bytes === 0 && held.length >= BLOCK) requireRaw(this.name, held);
      for (; held.length >= CHUNK; held = held.subarray(CHUNK)) {
        bytes += CHUNK;
        if (bytes > this.sizeBytes) break;
        yield held.subarray(0, CHUNK);
      }
      if (bytes + held.length > this.sizeBytes || bytes > this.sizeBytes)
        throw new LauncherError(`${this.name} is longer than ${this.sizeBytes} bytes`, EXIT.data);
    }
    if (bytes === 0) requireRaw(this.name, held);
    if (bytes + held.length !== this.sizeBytes)
      throw new LauncherError(`${this.name} ended after ${bytes + held.length} of ${this.sizeBytes} bytes`, EXIT.data);
    if (held.length > 0) yield held;
    const after = await this.look?.();
    if (before && after && (before.mtimeMs !== after.mtimeMs || before.size !== after.size))
      throw new LauncherError(`${this.name} was written while it was read: import it when nobody does`);
  }
}

/** Also of a pipe that gives nothing and does not end. */
async function* pieces(source: Readable, signal: AbortSignal): AsyncGenerator<Buffer> {
  try {
    yield* addAbortSignal(signal, source);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

function whole(what: string, bytes: number): number {
  if (bytes > 0 && bytes % SECTOR === 0) return bytes;
  const next = Math.max(1, Math.ceil(bytes / SECTOR)) * SECTOR;
  throw new LauncherError(
    `${what}: ${bytes} bytes are no multiple of ${SECTOR}, the block size of disks; truncate -s ${next} fills it up with zeros`,
    EXIT.data,
  );
}

function requireRaw(name: string, head: Buffer): void {
  const format = FORMATS.find(([magic]) => head.subarray(0, magic.length).toString('latin1') === magic)?.[1];
  if (format === undefined) return;
  throw new LauncherError(
    `${name} is ${format}, and a disk is made of raw images: qemu-img convert -O raw makes one`,
    EXIT.data,
  );
}
