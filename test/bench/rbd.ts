import type { ImageRef } from '#backends/block-backend';
import { alternate, type BenchOptions, type Figure, median, spread } from '#test/bench/measure';
import { crowdFigures } from '#test/bench/rbd-crowd';
import { BackendImages } from '#test/bench/rbd-images';
import { RbdProgram } from '#test/bench/rbd-program';
import { stepFigures } from '#test/bench/rbd-step';
import { throughputFigures } from '#test/bench/rbd-throughput';
import { rbdHarness, rbdParts } from '#test/block-backend/rbd-harness';
import { createDatabase, type TestDatabase } from '#test/support/database';

const GIB = 1024 ** 3;
const SIZE = 10 * GIB;
/** What an operation may add to the program's time, beside its two commits. */
const ALLOWED_MS = 15;

/** Images of Ceph by our backend, by turns with the `rbd` program doing the same, without the operation around it. */
export async function benchRbd(options: BenchOptions): Promise<Figure[]> {
  const rbd = rbdParts();
  if (!rbd) throw new Error('bench rbd needs the Ceph of the run, with librbd');
  const database = await createDatabase();
  const harness = await rbdHarness(rbd.configuration);
  try {
    const images = new BackendImages(harness);
    const program = new RbdProgram(rbd.configuration);
    const commits = await commitTimes(database, options.quick ? 20 : 200);
    return [
      ...(await imageFigures(images, program, harness.cephPool, median(commits), options)),
      ...(await stepFigures({ harness, images, program, database, options })),
      ...(await throughputFigures(program, options)),
      ...(await crowdFigures(options)),
    ];
  } finally {
    await harness.close();
    await database.drop();
  }
}

async function imageFigures(
  images: BackendImages,
  program: RbdProgram,
  cephPool: string,
  commitMs: number,
  { quick }: BenchOptions,
): Promise<Figure[]> {
  const rounds = quick ? 2 : 12;
  const volumes: ImageRef[] = [];
  const snapshots: ImageRef[] = [];
  const clones: ImageRef[] = [];
  const at = (n: number, of = 'theirs') => `${cephPool}/${of}-${n}`;
  const clone = (from: string, to: string) => program.run(['clone', '--rbd-default-clone-format', '2', from, to]);
  const size = (bytes: number) => ['--size', `${bytes / GIB}G`];

  const compared = async (
    name: string,
    words: string,
    ours: (n: number) => Promise<unknown>,
    theirs: (n: number) => Promise<unknown>,
  ): Promise<Figure> => {
    const [a, b] = [counted(ours), counted(theirs)];
    const [mine, its] = await alternate(rounds, a, b);
    const limit = median(its) + ALLOWED_MS + 2 * commitMs;
    return {
      name: `${name}, median`,
      value: `${median(mine).toFixed(1)} ms`,
      limit: `<= ${limit.toFixed(1)} ms (the program, ${ALLOWED_MS} ms and two commits)`,
      baseline: `${words} ${median(its).toFixed(1)} ms`,
      ok: quick || median(mine) <= limit,
      spread: Math.max(spread(mine), spread(its)),
    };
  };

  // The child is started by the first call.
  await images.remove(await images.empty(SIZE));
  const created = await compared(
    'image of 10 GiB: created',
    'rbd create',
    async () => volumes.push(await images.empty(SIZE)),
    n => program.run(['create', ...size(SIZE), at(n)]),
  );
  const cut = await compared(
    'snapshot',
    'rbd snap create',
    async n => snapshots.push(await images.copy('snapshot', volumes[n]!)),
    n => program.run(['snap', 'create', `${at(n)}@cut`]),
  );
  // So that both clone the same: ours is a clone with a snapshot of its own (ADR 26).
  const rest = counted(async n => {
    await clone(`${at(n)}@cut`, at(n, 'snapshot'));
    await program.run(['snap', 'create', `${at(n, 'snapshot')}@sealed`]);
  });
  const sealed: number[] = [];
  for (let n = 0; n < rounds; n++) sealed.push(await rest());
  const cloned = await compared(
    'clone of a snapshot',
    'rbd clone',
    async n => clones.push(await images.copy('volume', snapshots[n]!)),
    n => clone(`${at(n, 'snapshot')}@sealed`, at(n, 'clone')),
  );
  const grown = await compared(
    'clone: expanded',
    'rbd resize',
    n => images.grow(clones[n]!, SIZE + GIB),
    n => program.run(['resize', ...size(SIZE + GIB), at(n, 'clone')]),
  );
  const deleted = await compared(
    'clone: deleted',
    'rbd rm',
    n => images.remove(clones[n]!),
    n => program.run(['rm', at(n, 'clone')]),
  );
  const asOurs = `${median(sealed).toFixed(1)} ms more for a clone with a snapshot of its own, as ours is`;
  return [created, { ...cut, baseline: `${cut.baseline}; ${asOurs}` }, cloned, grown, deleted];
}

/** With the number of the call, from 0 on. */
function counted(work: (n: number) => Promise<unknown>): () => Promise<number> {
  let next = 0;
  return async () => {
    const begin = performance.now();
    await work(next++);
    return performance.now() - begin;
  };
}

/** Of one row. */
async function commitTimes(database: TestDatabase, count: number): Promise<number[]> {
  await database.query('CREATE TABLE public.bench_commit (note text)');
  const commit = counted(n => database.query('INSERT INTO public.bench_commit VALUES ($1)', [String(n)]));
  const times: number[] = [];
  for (let n = 0; n < count; n++) times.push(await commit());
  return times;
}
