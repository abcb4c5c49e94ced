import { emptyBatch, type RangeBatch } from '#backends/extent-source';

/** `count` changes of 4 KiB at places that follow from their number, about 1 TiB apart from end to end. */
export async function* scattered(count: number, from: number, bytes = 2 ** 40): AsyncGenerator<RangeBatch> {
  const blocks = Math.floor(bytes / 4_096 / count);
  const BATCH = 4_096;
  for (let done = 0; done < count; ) {
    const batch = emptyBatch(BATCH);
    for (; done < count && batch.count < BATCH; done++) {
      const offset = (done * blocks + (hash(done) % (blocks - 1))) * 4_096;
      if (offset + 4_096 <= from) continue;
      const n = batch.count++;
      batch.offsets[n] = offset;
      batch.lengths[n] = 4_096;
      batch.holes[n] = done % 11 === 0 ? 1 : 0;
    }
    if (batch.count > 0) yield batch;
  }
}

const hash = (n: number): number => (Math.imul(n ^ (n >>> 15), 0x2c1b3c6d) ^ Math.imul(n, 0x297a2d39)) >>> 0;
