import { counted } from '#platform/counted';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import type { BackupStore, Point } from './backup-store.js';
import type { Progress } from './progress.js';
import { type Damage, storedChunks } from './stored-image.js';

export interface CheckReport {
  points: number;
  /** Of all files that were read. */
  bytes: number;
  damages: Damage[];
}

/** Reads everything that the points of a folder have stored, and compares it with their checksums. Changes nothing. */
export async function runCheck(store: BackupStore, progress: Progress): Promise<CheckReport> {
  const { points } = store;
  const damages: Damage[] = [];
  const chains = newestOf(points).flatMap(({ number, data }) => {
    try {
      return [store.chain(number)];
    } catch (error) {
      if (!(error instanceof LauncherError)) throw error;
      damages.push({ point: number, file: data.file, what: error.message });
      return [];
    }
  });
  const total = chains.reduce((sum, chain) => sum + chain.at(-1)!.capacityBytes, 0);
  let behind = 0;
  for (const chain of chains) {
    try {
      for await (const { offset } of storedChunks(store, chain, damage => note(damages, damage)))
        progress.show(behind + offset, total, behind + offset);
    } catch (error) {
      if (!(error instanceof LauncherError)) throw error;
      const { number, data } = chain.at(-1)!;
      damages.push({ point: number, file: data.file, what: error.message });
    }
    behind += chain.at(-1)!.capacityBytes;
  }
  progress.end();
  const bytes = points.reduce((sum, { data, sums }) => sum + data.bytes + sums.bytes, 0);
  return { points: points.length, bytes, damages };
}

export const describeCheck = ({ points, bytes }: CheckReport): string =>
  `${counted(points, 'point')}, ${humanBytes(bytes)}: all is as it was stored`;

/** Those that no other point builds on: their chains have all points. */
function newestOf(points: readonly Point[]): Point[] {
  const bases = new Set(points.map(({ base }) => base));
  return points.filter(({ number }) => !bases.has(number));
}

/** Neighbours of one kind are one. */
function note(damages: Damage[], damage: Damage): void {
  const last = damages.at(-1);
  const continues =
    last?.offset !== undefined &&
    last.file === damage.file &&
    last.what === damage.what &&
    last.offset + last.length! === damage.offset;
  if (continues) last.length! += damage.length!;
  else damages.push({ ...damage });
}
