import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { ClientReadableStream } from '@grpc/grpc-js';
import { DEFAULT_RANGES } from '#cbt/range-encoder';
import { PACKAGE_ROOT } from '#platform/package-root';
import { NODE_FLAGS } from '#platform/process/node-flags';
import { indexFigures } from '#test/bench/cbt-index';
import type { BenchDoors } from '#test/bench/cbt-server';
import {
  alternate,
  type BenchOptions,
  type Figure,
  median,
  perSecond,
  SHARE_OF_BARE,
  spread,
} from '#test/bench/measure';
import { CbtClient } from '#test/cbt/client';
import { S1 } from '#test/cbt/in-process-server';
import { parts } from '#test/support/parts';

const MIB = 1024 * 1024;
/** As clients for such amounts have it; with 64 KiB both sides wait for each other. */
const WINDOW = 4 * MIB;
const RANGES_LIMIT = 10_000_000;
const TIMES_OBJECTS = 5;
const GROWTH_LIMIT = 64 * MIB;
const CSI = '/csi.v1.SnapshotMetadata/GetMetadataAllocated';

/** Where the streams of the room begin: offsets as long as those of a large volume. */
const FROM = 1e9 * 16_384;

export async function benchCbt(options: BenchOptions): Promise<Figure[]> {
  const child = fork(join(PACKAGE_ROOT, 'dist/test/bench/cbt-server.js'), {
    execArgv: [...NODE_FLAGS],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [doors] = (await once(child, 'message')) as [BenchDoors];
  const bare = CbtClient.overSocket(doors.bare, WINDOW);
  const plain = (from: number) => rangesPerSecond(bare.stream('/bare/Bytes', { 2: from }), options.quick ? 300 : 3_000);
  try {
    const figures = await faceFigures(options, child, doors, bare, plain);
    return parts().xfs ? [...figures, ...(await indexFigures(options, plain))] : figures;
  } finally {
    bare.close();
    const gone = once(child, 'exit');
    child.disconnect();
    await gone;
  }
}

/** The services of changed blocks, over a source that costs nothing, to a client that does not decode. */
async function faceFigures(
  { quick }: BenchOptions,
  child: ChildProcess,
  doors: BenchDoors,
  bare: CbtClient,
  bareRate: (from: number) => Promise<number>,
): Promise<Figure[]> {
  const room = CbtClient.overSocket(doors.room, WINDOW);
  const size = async (): Promise<{ now: number; most: number }> => {
    child.send('size');
    return (await once(child, 'message'))[0];
  };
  try {
    const ms = quick ? 300 : 3_000;
    const rounds = quick ? 1 : 5;
    const ours = () => rangesPerSecond(room.stream(CSI, { 1: S1, 2: FROM }), ms);
    await ours();
    const [bytes, plain] = await alternate(rounds, ours, () => bareRate(FROM));
    const [again, objects] = await alternate(rounds, ours, () => rangesPerSecond(bare.stream('/bare/Objects', {}), ms));
    const rate = median([...bytes, ...again]);
    const times = median(again) / median(objects);
    const share = median(bytes) / median(plain);
    const { now } = await size();
    await take(room.stream(CSI, { 1: S1 }), quick ? 2_000_000 : 100_000_000);
    const long = (await size()).most - now;
    const before = (await size()).now;
    await sip(room.stream(CSI, { 1: S1 }), quick ? 2 : 60);
    const slow = (await size()).most - before;
    return [
      {
        name: 'ranges to a client that does not decode',
        value: perSecond(rate),
        limit: perSecond(RANGES_LIMIT),
        baseline: `protobufjs objects ${perSecond(median(objects))}`,
        ok: rate >= RANGES_LIMIT,
        spread: spread([...bytes, ...again]),
      },
      {
        name: 'against protobufjs objects',
        value: `${times.toFixed(1)} times`,
        limit: `${TIMES_OBJECTS} times`,
        baseline: '',
        ok: times >= TIMES_OBJECTS,
      },
      {
        name: 'bytes against bare grpc-js, messages of the same size, of a source that costs nothing',
        value: `${Math.round(share * 100)} %`,
        limit: `${SHARE_OF_BARE * 100} %`,
        baseline: `${perSecond(median(plain))} ranges as ready-made messages`,
        ok: share >= SHARE_OF_BARE,
      },
      growth(`growth over a stream of ${quick ? '2' : '100'} million ranges`, long),
      growth('growth with a reader of one message a second', slow),
    ];
  } finally {
    room.close();
  }
}

const growth = (name: string, bytes: number): Figure => ({
  name,
  value: `${Math.round(bytes / MIB)} MiB`,
  limit: `${GROWTH_LIMIT / MIB} MiB`,
  baseline: '',
  ok: bytes < GROWTH_LIMIT,
});

/** All messages of these streams are full. */
async function rangesPerSecond(stream: ClientReadableStream<Buffer>, ms: number): Promise<number> {
  await once(stream, 'data');
  let messages = 0;
  const begin = performance.now();
  const gone = over(stream);
  stream.on('data', () => {
    if (++messages % 64 === 0 && performance.now() - begin > ms) stream.cancel();
  });
  await gone;
  return (messages * DEFAULT_RANGES * 1_000) / (performance.now() - begin);
}

async function take(stream: ClientReadableStream<Buffer>, ranges: number): Promise<void> {
  let left = Math.ceil(ranges / DEFAULT_RANGES);
  const gone = over(stream);
  stream.on('data', () => {
    if (--left === 0) stream.cancel();
  });
  await gone;
}

/** One message a second, then a draught. */
async function sip(stream: ClientReadableStream<Buffer>, seconds: number): Promise<void> {
  const gone = over(stream);
  for (let second = 0; second < seconds; second++) {
    while (stream.read() === null) await once(stream, 'readable');
    await new Promise(resolve => setTimeout(resolve, 1_000));
  }
  let left = 500;
  stream.on('data', () => {
    if (--left === 0) stream.cancel();
  });
  await gone;
}

const over = (stream: ClientReadableStream<Buffer>): Promise<void> => {
  stream.on('error', () => {});
  return new Promise(resolve => stream.once('status', () => resolve()));
};
