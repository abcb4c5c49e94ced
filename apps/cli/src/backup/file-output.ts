import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';

const BUFFER = 256 * 1024;

/** A new file, written from front to back, with the SHA-256 of what was written. */
export class FileOutput {
  #parts: Buffer[] = [];
  #buffered = 0;
  readonly #hash: Hash = createHash('sha256');
  bytes = 0;

  private constructor(
    readonly path: string,
    private readonly file: FileHandle,
  ) {}

  static async create(path: string): Promise<FileOutput> {
    return new FileOutput(path, await open(path, 'wx', 0o600));
  }

  /** The bytes must not change afterwards. */
  async write(bytes: Buffer): Promise<void> {
    this.#hash.update(bytes);
    this.bytes += bytes.length;
    this.#parts.push(bytes);
    this.#buffered += bytes.length;
    if (this.#buffered >= BUFFER) await this.#flush();
  }

  /** On the disk when it resolves; gives the checksum in hex. */
  async finish(): Promise<string> {
    await this.#flush();
    await this.file.sync();
    await this.file.close();
    return this.#hash.digest('hex');
  }

  async abandon(): Promise<void> {
    await this.file.close().catch(() => {});
  }

  async #flush(): Promise<void> {
    const buffers = this.#parts;
    this.#parts = [];
    this.#buffered = 0;
    for (let rest = buffers; rest.length > 0; ) {
      const { bytesWritten } = await this.file.writev(rest.slice(0, 512));
      rest = without(rest, bytesWritten);
    }
  }
}

function without(buffers: Buffer[], bytes: number): Buffer[] {
  let at = 0;
  let left = bytes;
  while (at < buffers.length && left >= buffers[at]!.length) left -= buffers[at++]!.length;
  const rest = buffers.slice(at);
  if (left > 0) rest[0] = rest[0]!.subarray(left);
  return rest;
}
