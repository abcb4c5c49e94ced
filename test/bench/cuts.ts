import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';
import type { BenchOptions, Figure } from '#test/bench/measure';
import type { RealDriver } from '#test/csp/driver-client';
import type { TestAppliance } from '#test/support/appliance';

const GIB = 1024 ** 3;
const BLOCK = 4096;

/**
 * What a snapshot and a clone cost, by the size of the volume and by the number of its extents, and how long a writer
 * stands still meanwhile. No limit is owed: they say what to expect.
 */
export async function cutFigures(
  appliance: TestAppliance,
  driver: RealDriver,
  { quick }: BenchOptions,
): Promise<Figure[]> {
  const cases = quick
    ? [{ size: GIB, extents: 100 }]
    : [
        { size: GIB, extents: 1_000 },
        { size: 1024 * GIB, extents: 1_000 },
        { size: 1024 * GIB, extents: 10_000 },
        { size: 1024 * GIB, extents: 100_000 },
      ];
  const figures: Figure[] = [];
  for (const { size, extents } of cases) {
    const name = `cut-${size / GIB}-${extents}`;
    const volume = await driver.createVolume(name, size);
    const path = await imageOf(appliance.poolPath, volume.id);
    await scatter(path, size, extents);
    const writer = spawn(
      process.execPath,
      [join(PACKAGE_ROOT, 'dist', 'test', 'bench', 'cut-writer.js'), path, String(size)],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
    const slowest = async () => {
      writer.stdin.write('\n');
      return Number(String((await once(writer.stdout, 'data'))[0])) / 1_000;
    };
    await once(writer.stdout, 'data');
    await slowest();
    await new Promise(resolve => setTimeout(resolve, 300));
    const usual = await slowest();
    const [snapshot, snapshotMs] = await timed(() => driver.createSnapshot(volume.id, `${name}-snapshot`));
    const stall = await slowest();
    writer.stdin.end();
    await once(writer, 'exit');
    const [, cloneMs] = await timed(() => driver.createVolume(`${name}-clone`, size, {}, { snapshotId: snapshot.id }));
    figures.push({
      name: `snapshot of ${size / GIB} GiB with ${extents} extents`,
      value: `${snapshotMs.toFixed(0)} ms, clone ${cloneMs.toFixed(0)} ms, longest write meanwhile ${stall.toFixed(1)} ms`,
      limit: '',
      baseline: `longest write before ${usual.toFixed(1)} ms`,
    });
  }
  return figures;
}

async function imageOf(poolPath: string, id: string): Promise<string> {
  const entries = await readdir(poolPath, { recursive: true });
  return join(poolPath, entries.find(entry => entry.endsWith(id) && entry.startsWith('volumes'))!);
}

/** Every second block from the start: no two are one extent. */
async function scatter(path: string, size: number, extents: number): Promise<void> {
  const file = await open(path, 'r+');
  const data = Buffer.alloc(BLOCK, 7);
  const step = Math.min(Math.floor(size / extents / BLOCK) * BLOCK, 16 * BLOCK);
  for (let n = 0; n < extents; n++) await file.write(data, 0, BLOCK, n * step);
  await file.sync();
  await file.close();
}

async function timed<T>(work: () => Promise<T>): Promise<[T, number]> {
  const begin = performance.now();
  const value = await work();
  return [value, performance.now() - begin];
}
