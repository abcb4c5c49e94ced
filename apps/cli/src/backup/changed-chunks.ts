import type { Range, RangePage } from './metadata-stream.js';

/** Checksums are kept for each of these. */
export const BLOCK = 64 * 1024;
/** Read at once: a multiple of BLOCK. */
export const CHUNK = 1024 * 1024;

/** What to read of one chunk of the image, and which parts of it changed. */
export interface ChangedChunk {
  /** Aligned to CHUNK. */
  offset: number;
  /** Within the chunk, ascending. */
  parts: Range[];
  capacityBytes: number;
}

/** Ranges cut at the borders of chunks, those of one chunk together. Keeps one chunk and one page in memory. */
export async function* changedChunks(pages: AsyncIterable<RangePage>): AsyncGenerator<ChangedChunk> {
  let open: ChangedChunk | undefined;
  for await (const { capacityBytes, ranges } of pages)
    for (const range of ranges)
      for (let at = range.offset, end = range.offset + range.length; at < end; ) {
        const offset = at - (at % CHUNK);
        const length = Math.min(end, offset + CHUNK) - at;
        if (open?.offset !== offset) {
          if (open) yield open;
          open = { offset, parts: [], capacityBytes };
        }
        open.parts.push({ offset: at, length });
        at += length;
      }
  if (open) yield open;
}

/** Whole blocks that the parts touch, neighbours together, clipped to the capacity. */
export function touchedBlocks({ parts, capacityBytes }: Omit<ChangedChunk, 'offset'>): Range[] {
  const runs: Range[] = [];
  for (const part of parts) {
    const begin = part.offset - (part.offset % BLOCK);
    const end = Math.min(Math.ceil((part.offset + part.length) / BLOCK) * BLOCK, capacityBytes);
    const last = runs.at(-1);
    if (last && begin <= last.offset + last.length) last.length = Math.max(last.length, end - last.offset);
    else runs.push({ offset: begin, length: end - begin });
  }
  return runs;
}
