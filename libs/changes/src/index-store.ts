import type { Span } from '#changes/span-path';
import type { Writer } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** Cuts, sizes and counts come as numbers: all are exact below 2^53. */
export interface StepKey {
  volumeId: string;
  kind: 'allocated' | 'delta';
  /** 0 for an allocated list. */
  from: number;
  to: number;
}

/** A step that is being built. */
export interface NewStep extends StepKey {
  id: string;
  level: number;
  baseBytes: number;
  targetBytes: number;
}

export interface Totals {
  ranges: number;
  dataBytes: number;
  holeBytes: number;
  chunks: number;
  storedBytes: number;
}

const COLUMNS = `id, from_cut::float8 AS "from", to_cut::float8 AS "to", level, ranges::float8 AS ranges, chunks`;
const SPANS = sql(
  'changes_spans',
  `SELECT ${COLUMNS} FROM trivet.change_step
    WHERE tenant_id = $1 AND volume_id = $2 AND kind = 'delta' AND state = 'ready' AND from_cut >= $3 AND to_cut <= $4`,
);
const LISTS = sql(
  'changes_lists',
  `SELECT ${COLUMNS} FROM trivet.change_step
    WHERE tenant_id = $1 AND volume_id = $2 AND kind = 'allocated' AND state = 'ready' AND to_cut <= $3
    ORDER BY to_cut DESC LIMIT $4`,
);
const BROKEN = sql(
  'changes_broken',
  `SELECT reason FROM trivet.change_step
    WHERE tenant_id = $1 AND volume_id = $2 AND kind = 'delta' AND state = 'broken' AND from_cut < $4 AND to_cut > $3
    ORDER BY to_cut LIMIT 1`,
);
/** The last chunk is among them whatever its end is: its number says that the step is whole. */
const CHUNK = sql(
  'changes_chunk',
  `SELECT no, body FROM trivet.change_chunk
    WHERE tenant_id = $1 AND step_id = $2 AND no > $3 AND (end_offset > $4 OR no = $5) ORDER BY no LIMIT 1`,
);
const STEP_BROKE = sql(
  'changes_step_broke',
  `UPDATE trivet.change_step SET state = 'broken', reason = $3 WHERE tenant_id = $1 AND id = $2 AND state = 'ready'
   RETURNING 1`,
);
const STEP_STATE = sql('changes_step_state', 'SELECT state FROM trivet.change_step WHERE tenant_id = $1 AND id = $2');

const REMOVE = sql(
  'changes_step_remove',
  `DELETE FROM trivet.change_step
    WHERE tenant_id = $1 AND volume_id = $2 AND kind = $3 AND from_cut = $4 AND to_cut = $5 AND state <> 'ready'`,
);
const INSERT = sql(
  'changes_step_insert',
  `INSERT INTO trivet.change_step (tenant_id, volume_id, kind, from_cut, to_cut, id, level, base_bytes, target_bytes,
                                   state, reason)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
);
const PUT_CHUNK = sql(
  'changes_chunk_put',
  `INSERT INTO trivet.change_chunk (tenant_id, step_id, no, first_offset, end_offset, body) VALUES ($1, $2, $3, $4, $5, $6)`,
);
const READY = sql(
  'changes_step_ready',
  `UPDATE trivet.change_step
      SET state = 'ready', ranges = $3, data_bytes = $4, hole_bytes = $5, chunks = $6, stored_bytes = $7
    WHERE tenant_id = $1 AND id = $2`,
);

export const readSpans = (tx: Tx, tenantId: string, volumeId: string, from: number, to: number): Promise<Span[]> =>
  tx.query<Span>(SPANS, [tenantId, volumeId, from, to]);

/** Allocated lists of this cut and before it, the newest first. */
export const readLists = (tx: Tx, tenantId: string, volumeId: string, upTo: number, limit: number): Promise<Span[]> =>
  tx.query<Span>(LISTS, [tenantId, volumeId, upTo, limit]);

/** Why there is a gap between the two cuts, when something broke there. */
export async function brokenBetween(
  tx: Tx,
  tenantId: string,
  volumeId: string,
  from: number,
  to: number,
): Promise<string | undefined> {
  const [row] = await tx.query<{ reason: string | null }>(BROKEN, [tenantId, volumeId, from, to]);
  return row && (row.reason ?? 'a step is broken');
}

/**
 * The first chunk after number `after` that reaches beyond `offset`, or the last one; undefined: it is not there.
 * @param into memory that may be written over, used if it is enough
 */
export async function readChunk(
  database: Database,
  tenantId: string,
  step: { id: string; chunks: number },
  after: number,
  offset: number,
  into?: Buffer,
): Promise<{ no: number; body: Buffer; memory: Buffer } | undefined> {
  let chunk: { no: number; body: Buffer; memory: Buffer } | undefined;
  const keep = ([no, body]: Buffer[]): void => {
    const { length } = body!;
    const memory = into && into.length >= length ? into : Buffer.allocUnsafeSlow(length);
    body!.copy(memory);
    chunk = { no: no!.readInt32BE(), body: memory.subarray(0, length), memory };
  };
  const params = [tenantId, step.id, after, offset, step.chunks - 1];
  await database.withTenant(tenantId, tx => tx.copy(CHUNK, params, keep));
  return chunk;
}

/** A chunk of it cannot be read: it is not offered again. False: it is not there any more. */
export async function markStepBroken(
  database: Database,
  tenantId: string,
  stepId: string,
  reason: string,
): Promise<boolean> {
  const rows = await database.withTenant(tenantId, tx => tx.query(STEP_BROKE, [tenantId, stepId, reason]));
  return rows.length > 0;
}

export async function stepState(tx: Tx, tenantId: string, stepId: string): Promise<string | undefined> {
  const [row] = await tx.query<{ state: string }>(STEP_STATE, [tenantId, stepId]);
  return row?.state;
}

/** What an earlier operation left unfinished, or broken, under the same key makes room for it. */
export function writeNewStep(writer: Writer, { tenantId }: LeasedOperation, step: NewStep): void {
  insertStep(writer, tenantId, step, 'building', null);
}

export function writeBrokenStep(writer: Writer, { tenantId }: LeasedOperation, step: NewStep, reason: string): void {
  insertStep(writer, tenantId, step, 'broken', reason);
}

function insertStep(writer: Writer, tenantId: string, step: NewStep, state: string, reason: string | null): void {
  const key = [tenantId, step.volumeId, step.kind, step.from, step.to];
  writer.write(REMOVE, key);
  writer.write(INSERT, [...key, step.id, step.level, step.baseBytes, step.targetBytes, state, reason]);
}

export function writeChunk(
  writer: Writer,
  { tenantId }: LeasedOperation,
  stepId: string,
  no: number,
  chunk: { firstOffset: number; endOffset: number; body: Buffer },
): void {
  writer.write(PUT_CHUNK, [tenantId, stepId, no, chunk.firstOffset, chunk.endOffset, chunk.body]);
}

export function writeReady(writer: Writer, { tenantId }: LeasedOperation, stepId: string, totals: Totals): void {
  const { ranges, dataBytes, holeBytes, chunks, storedBytes } = totals;
  writer.write(READY, [tenantId, stepId, ranges, dataBytes, holeBytes, chunks, storedBytes]);
}
