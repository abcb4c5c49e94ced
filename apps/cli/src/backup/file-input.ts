import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { LauncherError } from '../home.js';

const BUFFER = 256 * 1024;

/** A file read from front to back, with the SHA-256 of what was read. */
export class FileInput {
  #buffer = Buffer.alloc(0);
  readonly #hash: Hash = createHash('sha256');

  private constructor(
    readonly path: string,
    private readonly file: FileHandle,
  ) {}

  static async open(path: string): Promise<FileInput> {
    const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
      throw new LauncherError(`cannot read ${path} (${error.code})`);
    });
    return new FileInput(path, file);
  }

  /** Exactly so many bytes, or undefined at the end. */
  async take(length: number): Promise<Buffer | undefined> {
    while (this.#buffer.length < length) {
      const more = Buffer.allocUnsafe(Math.max(BUFFER, length - this.#buffer.length));
      const { bytesRead } = await this.file.read(more, 0, more.length, null);
      if (bytesRead === 0) {
        if (this.#buffer.length === 0) return undefined;
        throw new LauncherError(`${this.path} is cut off`);
      }
      this.#hash.update(more.subarray(0, bytesRead));
      this.#buffer = Buffer.concat([this.#buffer, more.subarray(0, bytesRead)]);
    }
    const taken = this.#buffer.subarray(0, length);
    this.#buffer = this.#buffer.subarray(length);
    return taken;
  }

  /** Of the whole file, in hex; at its end. */
  checksum(): string {
    return this.#hash.digest('hex');
  }

  async close(): Promise<void> {
    await this.file.close();
  }
}
