import type { ImageRef } from '#backends/block-backend';
import { readPortion } from '#changes/build-portion';
import { alternate, type BenchOptions, type Figure, median, spread } from '#test/bench/measure';
import type { BackendImages } from '#test/bench/rbd-images';
import type { RbdProgram } from '#test/bench/rbd-program';
import { OBJECT_BYTES, placeOf, type RbdHarness } from '#test/block-backend/rbd-harness';
import type { TestDatabase } from '#test/support/database';

const TIB = 1024 ** 4;
const BLOCK = 4_096;
/** Written of each object before the base is taken: a store of the test run in memory keeps what lies before a write, too. */
const BLOCKS_BEFORE = 4;
const LIMIT = 1.25;

interface Parts {
  harness: RbdHarness;
  images: BackendImages;
  program: RbdProgram;
  database: TestDatabase;
  options: BenchOptions;
}

/** What the worker does for a step: reads the changes, encodes them and stores them with a commit for each portion. */
export async function stepFigures({ harness, images, program, database, options }: Parts): Promise<Figure[]> {
  const count = options.quick ? 200 : 10_000;
  const volume = await images.empty(TIB);
  const path = harness.backend.pathOf(volume);
  const every = Math.floor(TIB / OBJECT_BYTES / count) * OBJECT_BYTES;
  const pieces = (blocks: number, mark: number, at: (n: number) => number) =>
    Array.from({ length: count }, (_, n) => ({
      offset: n * every + at(n) * BLOCK,
      data: Buffer.alloc(blocks * BLOCK, mark),
    }));
  await program.write(
    path,
    TIB,
    pieces(BLOCKS_BEFORE, 1, () => 0),
  );
  const base = await images.copy('snapshot', volume);
  await program.write(
    path,
    TIB,
    pieces(1, 2, n => n % BLOCKS_BEFORE),
  );
  const target = await images.copy('snapshot', volume);
  const cuts = await cutsOf(program, path);

  await database.query('CREATE TABLE public.bench_chunk (at bigint, body bytea)');
  const ours = () => timed(() => build(harness, database, base, target), count);
  const theirs = () =>
    timed(async () => {
      const printed = await program.run(['diff', '--from-snap', cuts[0]!, '--format', 'json', `${path}@${cuts[1]}`]);
      return JSON.parse(printed).length;
    }, count);
  await ours();
  const [built, diffs] = await alternate(options.quick ? 2 : 6, ours, theirs);
  for (const image of [target, base, volume]) await images.remove(image);
  const ratio = median(built) / median(diffs);
  return [
    {
      name: `step of ${count.toLocaleString('en')} extents on 1 TiB of Ceph: built, median`,
      value: `${median(built).toFixed(0)} ms (${ratio.toFixed(2)} of rbd diff)`,
      limit: `<= ${LIMIT} of rbd diff`,
      baseline: `rbd diff ${median(diffs).toFixed(0)} ms`,
      ok: options.quick || ratio <= LIMIT,
      spread: Math.max(spread(built), spread(diffs)),
    },
  ];
}

async function build(
  { extents }: RbdHarness,
  database: TestDatabase,
  base: ImageRef,
  target: ImageRef,
): Promise<number> {
  const signal = AbortSignal.timeout(120_000);
  let ranges = 0;
  for (let at = 0, done = false; !done; ) {
    const portion = await readPortion(from => extents.changed(base, target, from, signal), at, true);
    const first = portion.chunks.map(({ firstOffset }) => firstOffset);
    const bodies = portion.chunks.map(({ body }) => body);
    await database.query('INSERT INTO public.bench_chunk SELECT * FROM unnest($1::bigint[], $2::bytea[])', [
      first,
      bodies,
    ]);
    ranges += portion.ranges;
    ({ at, done } = portion);
  }
  return ranges;
}

/** The snapshots of the volume that ours were cloned from, the oldest first. */
async function cutsOf(program: RbdProgram, path: string): Promise<string[]> {
  const found: { id: number; name: string }[] = JSON.parse(await program.run(['snap', 'ls', '--format', 'json', path]));
  if (found.length !== 2) throw new Error(`${found.length} snapshots of ${placeOf(path).at.name}`);
  return found.sort((a, b) => a.id - b.id).map(({ name }) => name);
}

async function timed(work: () => Promise<number>, count: number): Promise<number> {
  const begin = performance.now();
  const found = await work();
  const ms = performance.now() - begin;
  if (found !== count) throw new Error(`${found} ranges of ${count}`);
  return ms;
}
