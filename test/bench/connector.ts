import { once } from 'node:events';
import { poolsSeen } from '#test/admin/resource-calls';
import { create, must } from '#test/bench/creations';
import { alternate, type BenchOptions, type Figure, median, perSecond, rate, spread } from '#test/bench/measure';
import { cpuMs, residentMiB } from '#test/bench/resident';
import { sessionFigures } from '#test/bench/sessions';
import type { CbtClient } from '#test/cbt/client';
import { BLOCKS, BUCKETS, type Connector, ConnectorHouse } from '#test/clusters/connector-house';
import { type LargeDelta, largeDelta } from '#test/clusters/large-delta';
import { parts } from '#test/support/parts';

const CALLERS = 32;
const OBJECTS = 500;
const CALLS_SHARE = 0.7;
const BYTES_SHARE = 0.8;
const STREAMS = 50;
const RESIDENT_MIB = 90;
const RANGES = 1_000_000;
const MIB = 1024 ** 2;
/** As in `bench cbt`. */
const WINDOW = 4 * MIB;
const DELTA = '/csi.v1.SnapshotMetadata/GetMetadataDelta';

/** What goes through a connector, by turns with the same at the gateway's own socket. */
export async function benchConnector(options: BenchOptions): Promise<Figure[]> {
  return [...(await carryingFigures(options)), ...(parts().xfs ? await sessionFigures(options) : [])];
}

async function carryingFigures(options: BenchOptions): Promise<Figure[]> {
  const house = await ConnectorHouse.open({
    ...(parts().xfs && { block: 'xfs' }),
    gateways: 1,
    env: { TRIVET_LOG_LEVEL: 'warn', TRIVET_LEASE_MS: '15000', TRIVET_RECONCILE_MS: '2000' },
  });
  try {
    const connector = await house.connector();
    await connector.process.ready();
    const calls = await callFigures(house, connector, options);
    if (!parts().xfs) return calls;
    await poolsSeen(house.house, house.acme);
    const delta = await largeDelta(house.house, options.quick ? 100_000 : RANGES);
    return [
      ...calls,
      ...(await streamFigures(house, connector, delta, options)),
      await memoryFigure(house, connector, delta, options),
    ];
  } finally {
    await house.close();
  }
}

async function callFigures(house: ConnectorHouse, { sockets }: Connector, { quick }: BenchOptions): Promise<Figure[]> {
  const direct = house.cosi(house.direct(BUCKETS, 'cosi'));
  const through = house.cosi(sockets.cosi);
  const names = Array.from({ length: quick ? 50 : OBJECTS }, (_, n) => `bench-${n}`);
  for (let at = 0; at < names.length; at += CALLERS)
    await Promise.all(names.slice(at, at + CALLERS).map(name => must(direct, 'DriverCreateBucket', create(name))));
  const of = (client: typeof direct, callers: number) => () =>
    rate(callers, quick ? 300 : 3_000, n => must(client, 'DriverCreateBucket', create(names[n % names.length]!)));
  const figures: Figure[] = [];
  for (const callers of [CALLERS, 1]) {
    const [ours, plain] = [of(through, callers), of(direct, callers)];
    await ours();
    await plain();
    const [carried, own] = await alternate(quick ? 1 : 5, ours, plain);
    const share = median(carried) / median(own);
    figures.push({
      name: `repeated CreateBucket, ${callers === 1 ? 'one caller' : `${callers} callers`}`,
      value: `${perSecond(median(carried))} (${share.toFixed(2)} of direct)`,
      limit: callers === 1 ? '' : `>= ${CALLS_SHARE.toFixed(2)} of the direct socket`,
      baseline: perSecond(median(own)),
      ...(callers > 1 && { ok: share >= CALLS_SHARE }),
      spread: Math.max(spread(carried), spread(own)),
    });
  }
  return figures;
}

async function streamFigures(
  house: ConnectorHouse,
  { process, sockets }: Connector,
  delta: LargeDelta,
  { quick }: BenchOptions,
): Promise<Figure[]> {
  const ms = quick ? 300 : 3_000;
  const direct = house.csi(house.direct(BLOCKS, 'csi'), WINDOW);
  const through = house.csi(sockets.csi, WINDOW);
  let carriedBytes = 0;
  let busy = 0;
  const ours = async (): Promise<number> => {
    const before = cpuMs(process.pid);
    const { bytes, perSecond: reached } = await drained(through, delta, ms);
    busy += cpuMs(process.pid) - before;
    carriedBytes += bytes;
    return reached;
  };
  const plain = async (): Promise<number> => (await drained(direct, delta, ms)).perSecond;
  await ours();
  await plain();
  const [carried, own] = await alternate(quick ? 1 : 5, ours, plain);
  const share = median(carried) / median(own);
  return [
    {
      name: 'bytes of a stream of changed blocks from the index',
      value: `${mibs(median(carried))} (${share.toFixed(2)} of direct)`,
      limit: `>= ${BYTES_SHARE.toFixed(2)} of the direct socket`,
      baseline: mibs(median(own)),
      ok: share >= BYTES_SHARE,
      spread: Math.max(spread(carried), spread(own)),
    },
    {
      name: 'processor time of the connector for a GiB of it',
      value: `${Math.round((busy * 1024 * MIB) / carriedBytes)} ms`,
      limit: '',
      baseline: '',
    },
  ];
}

const mibs = (bytes: number): string => `${Math.round(bytes / MIB)} MiB/s`;

/** Streams one after the other, read as fast as they come, without decoding. */
async function drained(client: CbtClient, { base, target }: LargeDelta, ms: number) {
  let bytes = 0;
  const begin = performance.now();
  do {
    const stream = client.stream(DELTA, { 1: base, 2: target });
    stream.on('data', (message: Buffer) => {
      bytes += message.length;
    });
    const [{ code, details }] = await once(stream, 'status');
    if (code !== 0) throw new Error(details);
  } while (performance.now() - begin < ms);
  return { bytes, perSecond: (bytes * 1_000) / (performance.now() - begin) };
}

/** A connection each: all read as fast as they can, then nobody reads, and what is on the way stays there. */
async function memoryFigure(
  house: ConnectorHouse,
  { process, sockets }: Connector,
  delta: LargeDelta,
  { quick }: BenchOptions,
): Promise<Figure> {
  const before = residentMiB(process.pid);
  const count = quick ? 5 : STREAMS;
  const clients = Array.from({ length: count }, () => house.csi(sockets.csi, WINDOW));
  await Promise.all(clients.map(client => drained(client, delta, quick ? 300 : 5_000)));
  const held = clients.map(client => client.stream(DELTA, { 1: delta.base, 2: delta.target }));
  await Promise.all(
    held.map(async stream => {
      stream.on('error', () => {});
      await once(stream, 'readable');
    }),
  );
  const most = residentMiB(process.pid, 'VmHWM');
  for (const stream of held) stream.cancel();
  return {
    name: `memory of the connector with ${count} streams, at most`,
    value: `${most.toFixed(0)} MiB`,
    limit: `< ${RESIDENT_MIB} MiB`,
    baseline: `${before.toFixed(0)} MiB before`,
    ok: most < RESIDENT_MIB,
  };
}
