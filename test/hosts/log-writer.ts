/**
 * A host that writes a log to a volume, record by record with a flush behind each, and reports what was acknowledged: a process of its own,
 * so that it can be on another network. argv: portal, target, IQN, slots. A record is a sector: its number, when, and a checksum; number n
 * is in slot n modulo slots. It comes back by itself, as an initiator of a kernel does, and repeats what it has no answer for.
 *
 * stdin `stop`: it reads the whole log, and says what each slot holds.
 */
import { createHash } from 'node:crypto';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { Initiator, type InitiatorSession } from '#test/support/initiator';

export const RECORD_BYTES = 512;
/** Without an answer for longer it hangs up: a fraction of what a kernel waits, so that the test sees the target, and not the wait. */
const ANSWER_MS = 1_500;
const AGAIN_MS = 100;

export type Report =
  | { acknowledged: number; at: number; waitedMs: number; sessions: number }
  | { slots: number[]; serials: string[] };

export function recordOf(number: number): Buffer {
  const record = Buffer.alloc(RECORD_BYTES);
  record.writeBigUInt64BE(BigInt(number), 0);
  createHash('sha256').update(record.subarray(0, 8)).digest().copy(record, 8);
  return record;
}

/** 0 where nothing was written; NaN where it is none. */
export function numberOf(record: Buffer): number {
  if (record.every(byte => byte === 0)) return 0;
  const number = Number(record.readBigUInt64BE(0));
  return recordOf(number).equals(record) ? number : Number.NaN;
}

async function main([portal = '', target = '', iqn = '', slots = '']: readonly string[]): Promise<void> {
  const count = Number(slots);
  let isStopping = false;
  createInterface({ input: process.stdin }).on('line', line => {
    if (line === 'stop') isStopping = true;
  });
  const say = (report: Report) => process.stdout.write(`${JSON.stringify(report)}\n`);
  let session: InitiatorSession | undefined;
  let sessions = 0;
  /** What the disk calls itself, session by session. */
  const serials: string[] = [];
  const withDisk = async <T>(work: (disk: InitiatorSession) => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        if (!session) {
          session = await within(new Initiator(iqn).login(portal, target, 1));
          sessions += 1;
          serials.push((await within(session.inquiryPage(0x83))).toString('hex'));
        }
        return await within(work(session));
      } catch {
        session?.session.destroy();
        session = undefined;
        await delay(AGAIN_MS);
      }
    }
  };
  for (let number = 1; !isStopping; number++) {
    const began = performance.now();
    await withDisk(async disk => {
      await disk.write((number % count) * RECORD_BYTES, recordOf(number));
      await disk.flush();
    });
    say({ acknowledged: number, at: Date.now(), waitedMs: performance.now() - began, sessions });
  }
  const found: number[] = [];
  for (let slot = 0; slot < count; slot++)
    found.push(numberOf(await withDisk(disk => disk.read(slot * RECORD_BYTES, RECORD_BYTES))));
  say({ slots: found, serials });
  session?.session.destroy();
  process.exit(0);
}

function within<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer')), ANSWER_MS);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

if (process.argv[1]?.endsWith('log-writer.js')) await main(process.argv.slice(2));
