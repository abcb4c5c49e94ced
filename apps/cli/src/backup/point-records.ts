import { LauncherError } from '../home.js';
import type { FileInput } from './file-input.js';
import type { Range } from './metadata-stream.js';

/** As they stand in a point's data file: see backup-store.ts. */
export const ZEROS_KIND = 0;
export const DATA_KIND = 1;
const HEAD = 16;

export function recordHead({ offset, length }: Range, kind: typeof ZEROS_KIND | typeof DATA_KIND): Buffer {
  const head = Buffer.alloc(HEAD);
  head.writeBigUInt64BE(BigInt(offset));
  head.writeUInt32BE(length, 8);
  head.writeUInt32BE(kind, 12);
  return head;
}

/** `content` is absent where the image has zeros. */
export async function* records(input: FileInput): AsyncGenerator<{ offset: number; length: number; content?: Buffer }> {
  for (let head = await input.take(HEAD); head; head = await input.take(HEAD)) {
    const offset = Number(head.readBigUInt64BE());
    const length = head.readUInt32BE(8);
    const kind = head.readUInt32BE(12);
    if (kind === ZEROS_KIND) yield { offset, length };
    else if (kind === DATA_KIND) {
      const content = await input.take(length);
      if (!content) throw new LauncherError(`${input.path} is cut off`);
      yield { offset, length, content };
    } else throw new LauncherError(`${input.path} is damaged: a record of kind ${kind}`);
  }
}
