import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib';
import { extract, pack } from 'tar-stream';
import { StorageError } from '#platform/errors';

/*
 * The file of a backup of Trivet's own database: a tar in zstd, so that any machine can look into it.
 *
 *   about.json            first: of which release, and what follows
 *   data/TABLE/000001     rows as COPY writes them (text), in pieces of a few MiB, one table after the other
 *   sequences.json        where they stand, read after all rows
 *   sums.json             last: the SHA-256 of each entry before it. A file without it was cut off.
 */
const SUMS = 'sums.json';
/** One changed byte may change a name and what sums.json calls it alike, since the second is a reference to the first. */
const CHECKED = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const PART = /^(.+)\.[0-9a-f]{8}\.part$/;
/** Whoever still writes one has written to it since. */
const LEFT_MS = 24 * 3_600_000;

/** What dumps left that were killed while they wrote, to files of these names. */
export function removeLeftParts(folder: string, isOurs: (name: string) => boolean): void {
  for (const part of existsSync(folder) ? readdirSync(folder) : []) {
    const [, name] = PART.exec(part) ?? [];
    if (name === undefined || !isOurs(name)) continue;
    const found = statSync(join(folder, part), { throwIfNoEntry: false });
    if (found && Date.now() - found.mtimeMs > LEFT_MS) rmSync(join(folder, part), { force: true });
  }
}

/** Writes beside the name, which exists whole or not at all; mode 0600. */
export class DumpWriter {
  readonly #sums: Record<string, string> = {};
  readonly #tar = pack();
  readonly #written: Promise<void>;
  readonly #part: string;

  constructor(private readonly path: string) {
    removeLeftParts(dirname(path), name => name === basename(path));
    // The number of a process is the same in every container.
    this.#part = `${path}.${randomBytes(4).toString('hex')}.part`;
    const file = createWriteStream(this.#part, { flags: 'wx', mode: 0o600 });
    this.#written = pipeline(this.#tar, createZstdCompress(CHECKED), file);
    this.#written.catch(() => {});
  }

  async add(name: string, bytes: Buffer): Promise<void> {
    this.#sums[name] = sha256(bytes);
    await this.#entry(name, bytes);
  }

  async finish(): Promise<void> {
    await this.#entry(SUMS, Buffer.from(JSON.stringify(this.#sums, null, 2)));
    this.#tar.finalize();
    await this.#written;
    flush(this.#part);
    renameSync(this.#part, this.path);
    flush(dirname(this.path));
  }

  /** What is not finished goes. */
  async close(): Promise<void> {
    this.#tar.destroy();
    await this.#written.catch(() => {});
    rmSync(this.#part, { force: true });
  }

  /** Waits until there is room again, or rejects with the reason why there is none. */
  async #entry(name: string, bytes: Buffer): Promise<void> {
    const entry = this.#tar.entry({ name, size: bytes.length, mode: 0o600 });
    entry.on('error', () => {});
    const accepted = once(entry, 'finish');
    entry.end(bytes);
    await Promise.race([accepted, this.#written.then(() => accepted)]);
  }
}

function flush(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

export interface DumpEntry {
  name: string;
  bytes: Buffer;
}

/** The entries, in the order in which they were written; rejects at the end when one is missing, or not as it was. */
export async function* readDump(path: string): AsyncGenerator<DumpEntry, void> {
  const found: Record<string, string> = {};
  let sums: Record<string, string> | undefined;
  try {
    for await (const { name, bytes } of entriesOf(path)) {
      if (name === SUMS) sums = jsonOf(path, { name, bytes }) as Record<string, string>;
      else {
        found[name] = sha256(bytes);
        yield { name, bytes };
      }
    }
  } catch (error) {
    throw explain(path, error as NodeJS.ErrnoException);
  }
  if (!sums) throw damaged(path, 'its end is missing');
  for (const name of new Set([...Object.keys(sums), ...Object.keys(found)]))
    if (sums[name] !== found[name]) throw damaged(path, `${name} is not as it was written`);
}

async function* entriesOf(path: string): AsyncGenerator<DumpEntry, void> {
  const tar = extract();
  const read = pipeline(createReadStream(path), createZstdDecompress(), tar);
  read.catch(() => {});
  try {
    for await (const entry of tar) {
      const chunks: Buffer[] = [];
      for await (const chunk of entry) chunks.push(chunk as Buffer);
      yield { name: entry.header.name, bytes: Buffer.concat(chunks) };
    }
    await read;
  } finally {
    tar.destroy();
  }
}

/** What is not JSON any more is told before its sum is compared. */
export function jsonOf(path: string, { name, bytes }: DumpEntry): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw damaged(path, `${name} is not as it was written`);
  }
}

function explain(path: string, error: NodeJS.ErrnoException): Error {
  if (error.code === 'ENOENT' || error.code === 'EACCES' || error.code === 'EISDIR')
    return new StorageError('invalid_argument', `cannot read ${path}: ${error.code}`);
  if (/ZSTD|ZLIB|^Z_/.test(error.code ?? '') || /tar|end of (data|file|stream)/i.test(error.message))
    return damaged(path, 'it was cut off, or is no such file');
  return error;
}

const damaged = (path: string, why: string): StorageError =>
  new StorageError('invalid_argument', `${path} is damaged: ${why}`);
