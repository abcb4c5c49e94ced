import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TargetIo } from '#backends/exporter';
import { writeWhole } from '#backends/tgt/daemon-folder';
import type { UnitCounters } from '#backends/tgt/tgt-stat';

/** A look at the counters of one run of a daemon. */
export interface Look {
  instance: string;
  /** Milliseconds since the machine started, as all its processes count them: clocks that are set change nothing. */
  at: number;
  /** By `tid.lun.sid`: read bytes, reads, written bytes, writes. */
  counters: Readonly<Record<string, readonly [number, number, number, number]>>;
}

const keyOf = ({ tid, lun, sid }: UnitCounters): string => `${tid}.${lun}.${sid}`;

export const lookOf = (instance: string, at: number, units: readonly UnitCounters[]): Look => ({
  instance,
  at,
  counters: Object.fromEntries(
    units.map(unit => [keyOf(unit), [unit.readBytes, unit.reads, unit.writtenBytes, unit.writes] as const]),
  ),
});

/** What lies between two looks further apart belongs to no minute. */
const FURTHEST_MS = 300_000;

/**
 * What each target did between two looks, those that did nothing left out. undefined: they are of two runs of the daemon, or too far
 * apart. A session that began between them counts from its begin; one that ended, no more: too little may be said, and never too much.
 */
export function ioBetween(before: Look | undefined, now: Look): { seconds: number; targets: TargetIo[] } | undefined {
  if (!before || before.instance !== now.instance) return undefined;
  const elapsedMs = now.at - before.at;
  if (elapsedMs <= 0 || elapsedMs > FURTHEST_MS) return undefined;
  const byTid = new Map<number, TargetIo>();
  for (const [key, counted] of Object.entries(now.counters)) {
    const past = before.counters[key];
    // Counters that fell are those of another session.
    const isSame = past?.every((value, nth) => value <= counted[nth]!) ?? false;
    const [readBytes, reads, writtenBytes, writes] = counted.map(
      (value, nth) => value - (isSame ? past![nth]! : 0),
    ) as [...[number, number, number, number]];
    if (readBytes + reads + writtenBytes + writes === 0) continue;
    const tid = Number.parseInt(key, 10);
    const sum = byTid.get(tid) ?? { tid, readBytes: 0, reads: 0, writtenBytes: 0, writes: 0 };
    sum.readBytes += readBytes;
    sum.reads += reads;
    sum.writtenBytes += writtenBytes;
    sum.writes += writes;
    byTid.set(tid, sum);
  }
  return { seconds: elapsedMs / 1_000, targets: [...byTid.values()] };
}

/** The last look, in the daemon's folder: whichever worker of this host comes next goes on from it. */
export class LastLook {
  private readonly path: string;

  constructor(folder: string) {
    this.path = join(folder, 'io.json');
  }

  /** Undefined when there is none, or what is there is no look. */
  async read(): Promise<Look | undefined> {
    try {
      const found = JSON.parse(await readFile(this.path, 'utf8')) as Partial<Look>;
      return typeof found.at === 'number' && found.counters ? (found as Look) : undefined;
    } catch {
      return undefined;
    }
  }

  async write(look: Look): Promise<void> {
    await writeWhole(this.path, JSON.stringify(look));
  }
}
