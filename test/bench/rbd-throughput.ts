import { randomUUID } from 'node:crypto';
import type { TargetSpec } from '#backends/exporter';
import { unleased } from '#platform/lease-signal';
import { alternate, type BenchOptions, type Figure, median, spread } from '#test/bench/measure';
import type { RbdProgram } from '#test/bench/rbd-program';
import { openRbdTgtHarness } from '#test/exporter/rbd-images';
import type { InitiatorSession } from '#test/support/initiator';
import { randomOf } from '#test/support/random';

const KIB = 1024;
const MIB = 1024 ** 2;
const SIZE = 256 * MIB;
/** Requests in flight: of both. */
const AT_ONCE = 16;
const IQN = 'iqn.2026-01.example:bench';

interface Pattern {
  name: string;
  way: 'write' | 'read';
  order: 'seq' | 'rand';
  bytes: number;
  count: number;
}

const PATTERNS: readonly Pattern[] = [
  { name: 'written in order, 1 MiB each', way: 'write', order: 'seq', bytes: MIB, count: 256 },
  { name: 'read in order, 1 MiB each', way: 'read', order: 'seq', bytes: MIB, count: 256 },
  { name: 'written at random, 4 KiB each', way: 'write', order: 'rand', bytes: 4 * KIB, count: 4_096 },
  { name: 'read at random, 4 KiB each', way: 'read', order: 'rand', bytes: 4 * KIB, count: 4_096 },
];

/** One image through tgtd and an initiator of ours, by turns with `rbd bench` on the same image: information. */
export async function throughputFigures(program: RbdProgram, { quick }: BenchOptions): Promise<Figure[]> {
  const harness = await openRbdTgtHarness();
  try {
    const daemon = await harness.newDaemon();
    const image = await harness.makeImage(SIZE);
    const path = harness.pathOf(image);
    const [id, signal] = [randomUUID(), () => unleased(AbortSignal.timeout(30_000))];
    const identity = { vendor: 'TRIVET', product: 'VOLUME', unitSerial: 'naa' } as const;
    const initiators = [{ iqn: IQN }];
    const iqn = `iqn.2026-01.dev.trivet:${id}`;
    const spec: TargetSpec = { daemon, tid: 1, iqn, lun: 1, image, volumeId: id, identity, initiators };
    await harness.exporter.ensureDaemon(daemon, signal());
    await harness.exporter.applyTarget(spec, '1', signal());
    const session = await harness.login(spec, initiators[0]!);
    const figures: Figure[] = [];
    for (const pattern of PATTERNS) {
      const short = quick ? { ...pattern, count: pattern.count / 16 } : pattern;
      const [ours, theirs] = await alternate(
        quick ? 1 : 5,
        () => through(session, short),
        () => byProgram(program, path, short),
      );
      figures.push({
        name: `image of Ceph through tgtd: ${pattern.name}, ${AT_ONCE} at once, median`,
        value: words(median(ours), pattern),
        limit: '',
        baseline: `rbd bench ${words(median(theirs), pattern)}`,
        spread: Math.max(spread(ours), spread(theirs)),
      });
    }
    await session.close();
    await harness.exporter.removeTarget(spec, { force: true }, '2', signal());
    return figures;
  } finally {
    await harness.close();
  }
}

/** Requests a second. */
async function through(session: InitiatorSession, { way, order, bytes, count }: Pattern): Promise<number> {
  const random = randomOf(1);
  const data = Buffer.alloc(bytes, 0x5a);
  let next = 0;
  const begin = performance.now();
  const worker = async (): Promise<void> => {
    for (let n = next++; n < count; n = next++) {
      const offset = (order === 'seq' ? n % (SIZE / bytes) : random(SIZE / bytes)) * bytes;
      if (way === 'write') await session.write(offset, data);
      else await session.read(offset, bytes);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return (count * 1_000) / (performance.now() - begin);
}

async function byProgram(program: RbdProgram, image: string, { way, order, bytes, count }: Pattern): Promise<number> {
  const total = ['--io-size', `${bytes}`, '--io-total', `${bytes * count}`];
  const said = await program.run([
    'bench',
    '--io-type',
    way,
    '--io-pattern',
    order,
    '--io-threads',
    `${AT_ONCE}`,
    ...total,
    image,
  ]);
  const [, rate] = /elapsed:.*ops\/sec:\s*([\d.]+)/.exec(said) ?? [];
  if (rate === undefined) throw new Error(`rbd bench said ${said}`);
  return Number(rate);
}

const words = (rate: number, { bytes }: Pattern): string =>
  bytes >= MIB ? `${Math.round((rate * bytes) / MIB)} MiB/s` : `${Math.round(rate).toLocaleString('en')}/s`;
