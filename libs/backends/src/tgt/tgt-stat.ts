/**
 * What tgtd's `stat` says: a line for each unit and session, counted since the session began. A session that ends takes its
 * counters with it. tgt 1.0.85 counts bytes and commands, as they came in (submitted) and as they ended (done), and no times.
 */
export interface UnitCounters {
  tid: number;
  lun: number;
  /** Of the session; the lowest that is free, so a later session may have it again. */
  sid: number;
  readBytes: number;
  reads: number;
  writtenBytes: number;
  writes: number;
}

/** tgt lun sid rd_subm(bytes,cmds) rd_done(bytes,cmds) wr_subm(bytes,cmds) wr_done(bytes,cmds) errs */
const COLUMNS = 12;

/** Without the controllers, LUN 0. */
export function parseCounters(text: string): UnitCounters[] {
  const found: UnitCounters[] = [];
  for (const line of text.split('\n')) {
    const numbers = line.trim().split(/\s+/).map(Number);
    if (numbers.length !== COLUMNS || numbers.some(Number.isNaN) || numbers[1] === 0) continue;
    const [tid, lun, sid, , , readBytes, reads, , , writtenBytes, writes] = numbers as [
      ...[number, number, number, number, number, number],
      ...[number, number, number, number, number],
    ];
    found.push({ tid, lun, sid, readBytes, reads, writtenBytes, writes });
  }
  return found;
}
