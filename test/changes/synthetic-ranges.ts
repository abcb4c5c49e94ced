import { emptyBatch, type RangeBatch } from '#backends/extent-source';
import { ChunkEncoder } from '#changes/chunk-codec';

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

interface Queries {
  query(text: string, params?: unknown[]): Promise<unknown>;
}

/** Puts `count` scattered changes in the place of what a step holds. Returns how many chunks they take. */
export async function fillStep(
  database: Queries,
  { tenant_id, id }: { tenant_id: string; id: string },
  count: number,
  bytes?: number,
): Promise<number> {
  await database.query('DELETE FROM trivet.change_chunk WHERE step_id = $1', [id]);
  const encoder = new ChunkEncoder();
  let chunks = 0;
  const store = async (): Promise<void> => {
    const chunk = encoder.take();
    if (!chunk) return;
    const { firstOffset, endOffset, body } = chunk;
    const values = [tenant_id, id, chunks++, firstOffset, endOffset, body];
    await database.query('INSERT INTO trivet.change_chunk VALUES ($1, $2, $3, $4, $5, $6)', values);
  };
  for await (const batch of scattered(count, 0, bytes)) {
    for (let at = 0; at < batch.count; ) {
      at = encoder.add(batch, at);
      if (at < batch.count) await store();
    }
  }
  await store();
  await database.query('UPDATE trivet.change_step SET chunks = $2, ranges = $3 WHERE id = $1', [id, chunks, count]);
  return chunks;
}
