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

  /** Goes on with one after so many bytes; what is behind them is removed. */
  static async resume(path: string, bytes: number): Promise<FileOutput> {
    const file = await open(path, 'r+');
    const output = new FileOutput(path, file);
    const buffer = Buffer.alloc(BUFFER);
    try {
      await file.truncate(bytes);
      // From where the last read ended, the writes go on.
      while (output.bytes < bytes) {
        const { bytesRead } = await file.read(buffer, 0, BUFFER, null);
        if (bytesRead === 0) break;
        output.#hash.update(buffer.subarray(0, bytesRead));
        output.bytes += bytesRead;
      }
      return output;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** The bytes must not change afterwards. */
  async write(bytes: Buffer): Promise<void> {
    this.#hash.update(bytes);
    this.bytes += bytes.length;
    this.#parts.push(bytes);
    this.#buffered += bytes.length;
    if (this.#buffered >= BUFFER) await this.#flush();
  }

  /** What was written so far is on the disk when it resolves. */
  async sync(): Promise<void> {
    await this.#flush();
    await this.file.sync();
  }

  /** On the disk when it resolves; gives the checksum in hex. */
  async finish(): Promise<string> {
    await this.sync();
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
