import { readFileSync, writeFileSync } from 'node:fs';
import { ChunkEncoder } from '#changes/chunk-codec';
import { scattered } from '#test/changes/synthetic-ranges';
import type { TestDatabase } from '#test/support/database';

/** Of the snapshots of a volume, which is made as large as these ranges need. */
const BYTES = 2 ** 40;

/** Puts so many ranges into each delta of the volume, in chunks as its builder writes them. */
export async function enlargeSteps(database: TestDatabase, volumeId: string, ranges: number): Promise<void> {
  const chunks = [];
  const encoder = new ChunkEncoder();
  for await (const batch of scattered(ranges, 0, BYTES))
    for (let n = encoder.add(batch); ; n = encoder.add(batch, n)) {
      if (n === batch.count) break;
      chunks.push(encoder.take()!);
    }
  chunks.push(encoder.take()!);
  const steps = await database.query<{ id: string; tenant_id: string }>(
    `UPDATE trivet.change_step SET ranges = $2, chunks = $3
      WHERE volume_id = $1 AND kind = 'delta' AND state = 'ready' RETURNING id, tenant_id`,
    [volumeId, ranges, chunks.length],
  );
  for (const { id, tenant_id } of steps) {
    await database.query('DELETE FROM trivet.change_chunk WHERE step_id = $1', [id]);
    for (const [no, { firstOffset, endOffset, body }] of chunks.entries())
      await database.query('INSERT INTO trivet.change_chunk VALUES ($1, $2, $3, $4, $5, $6)', [
        tenant_id,
        id,
        no,
        firstOffset,
        endOffset,
        body,
      ]);
  }
  await database.query('UPDATE trivet.snapshot SET size_bytes = $2 WHERE volume_id = $1', [volumeId, BYTES]);
}

/** Bytes in memory of another process, as Linux counts them. */
export class Resident {
  constructor(private readonly pid: number) {}

  /** Now; from here on `most` counts. */
  begin(): number {
    writeFileSync(`/proc/${this.pid}/clear_refs`, '5');
    return this.read('VmRSS');
  }

  most = (): number => this.read('VmHWM');

  private read(field: string): number {
    const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${this.pid}/status`, 'utf8'))!;
    return Number(kib) * 1024;
  }
}
