import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
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
import { fillStep } from '#test/changes/synthetic-ranges';
import { DriverError, type RealDriver } from '#test/csp/driver-client';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const BLOCK = 4_096;
const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const TIB = 1024 * GIB;
const WINDOW = 4 * MIB;
const ALLOCATED = '/csi.v1.SnapshotMetadata/GetMetadataAllocated';
const DELTA = '/csi.v1.SnapshotMetadata/GetMetadataDelta';
const ROUND_MS = 3_000;
/** The same: within a quarter. */
const FLAT = 1.25;

interface Bench {
  appliance: TestAppliance;
  driver: RealDriver;
  client: CbtClient;
  options: BenchOptions;
}

/**
 * The change index behind a real gateway, built by a real worker from files on XFS.
 * @param bareRate ranges a second of bare grpc-js, in ready-made messages of ranges from an offset on
 */
export async function indexFigures(
  options: BenchOptions,
  bareRate: (from: number) => Promise<number>,
): Promise<Figure[]> {
  const socket = `/tmp/trivet-bench-${randomUUID().slice(0, 8)}.sock`;
  const appliance = await TestAppliance.start({
    backend: 'fake',
    block: 'xfs',
    env: {
      TRIVET_CSI_ENDPOINT: `unix://${socket}`,
      TRIVET_LOG_LEVEL: 'warn',
      // As in the product. Of a test's 3 s, a call gets 0.9 s, in which nobody counts a million extents.
      TRIVET_LEASE_MS: '15000',
    },
  });
  const client = CbtClient.overSocket(socket, WINDOW);
  try {
    await until('the pool was looked at', async () => {
      return (await appliance.database.query('SELECT FROM trivet.pool')).length === 1;
    });
    await appliance.database.query('UPDATE trivet.pool SET thin_ratio = 1000000');
    const driver = appliance.driver();
    await driver.login();
    const bench = { appliance, driver, client, options };
    return [
      ...(await firstMessage(bench)),
      ...(await bySize(bench)),
      ...(await building(bench)),
      ...(await againstComparing(bench)),
      ...(await fromIndex(bench, bareRate)),
    ];
  } finally {
    client.close();
    await appliance.close();
    rmSync(socket, { force: true });
  }
}

async function firstMessage({ driver, client, appliance, options }: Bench): Promise<Figure[]> {
  const volume = await driver.createVolume('bench-sparse', 64 * TIB);
  await change(appliance, volume.id, [63 * TIB]);
  const snapshot = await taken(appliance, driver, volume, 's1');
  const times: number[] = [];
  for (let n = 0; n < (options.quick ? 2 : 15); n++) {
    const begin = performance.now();
    const stream = client.stream(ALLOCATED, { 1: snapshot.id });
    const ended = over(stream);
    await once(stream, 'data');
    times.push(performance.now() - begin);
    await ended;
  }
  const ms = median(times);
  return [
    {
      name: 'first message of a sparse volume of 64 TiB, median',
      value: `${ms.toFixed(1)} ms`,
      limit: '50 ms',
      baseline: `the slowest ${Math.max(...times).toFixed(1)} ms`,
      ok: ms <= 50,
    },
  ];
}

/** As many changes, on a volume a thousand times as large. */
async function bySize({ driver, client, appliance, options }: Bench): Promise<Figure[]> {
  const changes = options.quick ? 100 : 10_000;
  const pairs: (() => Promise<number>)[] = [];
  for (const size of [GIB, TIB]) {
    const volume = await driver.createVolume(`bench-size-${size / GIB}`, size);
    const base = await taken(appliance, driver, volume, 'base');
    await change(appliance, volume.id, spaced(changes, size));
    const target = await taken(appliance, driver, volume, 'target');
    pairs.push(async () => {
      const { ms, ranges } = await drain(client.stream(DELTA, { 1: base.id, 2: target.id }));
      if (ranges !== changes) throw new Error(`${ranges} ranges of ${changes}`);
      return ms;
    });
  }
  const [small, large] = await alternate(options.quick ? 2 : 25, pairs[0]!, pairs[1]!);
  const ratio = median(large) / median(small);
  return [
    {
      name: `delta of ${changes} changes on 1 TiB, median`,
      value: `${median(large).toFixed(1)} ms (${ratio.toFixed(2)} of that on 1 GiB)`,
      limit: `<= ${FLAT} of that on 1 GiB`,
      baseline: `${median(small).toFixed(1)} ms`,
      ok: ratio <= FLAT,
      spread: Math.max(spread(small), spread(large)),
    },
  ];
}

async function building({ driver, appliance, options }: Bench): Promise<Figure[]> {
  const figures: Figure[] = [];
  const counts = options.quick ? [200] : [10_000, 100_000, 1_000_000];
  for (const count of counts) {
    const volume = await driver.createVolume(`bench-build-${count}`, TIB);
    await taken(appliance, driver, volume, 'base');
    await change(appliance, volume.id, random(count, TIB));
    const before = await chunkBytes(appliance);
    // Many extents stall writers for longer than is done unasked.
    const name = `step of ${count.toLocaleString('en')} extents: built`;
    const snapshot = await until('it is cut', () => cut(driver, volume.id, `${volume.name}-target`), 120_000).catch(
      () => undefined,
    );
    if (!snapshot) {
      figures.push({ name, value: 'not cut within 120 s', limit: '', baseline: '', ok: false });
      continue;
    }
    const begin = performance.now();
    await indexed(appliance, snapshot.id);
    const ms = performance.now() - begin;
    const stored = ((await chunkBytes(appliance)) - before) / count;
    figures.push({
      name,
      value: `${(ms / 1_000).toFixed(2)} s (${perSecond((count * 1_000) / ms)})`,
      limit: '',
      baseline: '',
    });
    if (count === 100_000 || options.quick)
      figures.push({
        name: `stored bytes of a changed extent, ${count.toLocaleString('en')} random ones of 4 KiB on 1 TiB`,
        value: stored.toFixed(1),
        limit: '< 12',
        baseline: '',
        ok: options.quick || stored < 12,
      });
  }
  return figures;
}

/** As the sidecar does it: a call that is not done in time is made again. */
const cut = (driver: RealDriver, volumeId: string, name: string) =>
  driver.createSnapshot(volumeId, name, { force: 'true' }).catch(error => {
    if (error instanceof DriverError && error.status === 503) return undefined;
    throw error;
  });

/** Against reading both files and comparing them block by block, as a driver does that has no index. */
async function againstComparing({ driver, client, appliance, options }: Bench): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const gib of options.quick ? [1] : [1, 10, 100]) {
    const volume = await driver.createVolume(`bench-compare-${gib}`, gib * GIB);
    const base = await taken(appliance, driver, volume, 'base');
    const changes = spaced(1_000, gib * GIB);
    await change(appliance, volume.id, changes);
    const target = await taken(appliance, driver, volume, 'target');
    const { ms } = await drain(client.stream(DELTA, { 1: base.id, 2: target.id }));
    const paths = await Promise.all([base, target].map(({ id }) => imageOf(appliance, 'snapshots', id)));
    const begin = performance.now();
    const found = await compare(paths as [string, string], options.quick ? 16 * MIB : gib * GIB);
    const comparing = performance.now() - begin;
    if (!options.quick && found !== changes.length) throw new Error(`${found} differences of ${changes.length}`);
    figures.push({
      name: `delta of 1,000 changes on ${gib} GiB`,
      value: `${ms.toFixed(1)} ms`,
      limit: '',
      baseline: `${(comparing / 1_000).toFixed(2)} s to compare the two files block by block`,
    });
  }
  return figures;
}

/** A step far larger than anybody changes between two snapshots, so that a stream takes seconds. */
async function fromIndex(
  { driver, client, appliance, options }: Bench,
  bareRate: (from: number) => Promise<number>,
): Promise<Figure[]> {
  const count = options.quick ? 100_000 : 20_000_000;
  const volume = await driver.createVolume('bench-index', TIB);
  const base = await taken(appliance, driver, volume, 'base');
  await change(appliance, volume.id, [0]);
  const target = await taken(appliance, driver, volume, 'target');
  const [step] = await appliance.database.query<{ tenant_id: string; id: string }>(
    `SELECT tenant_id, id FROM trivet.change_step WHERE volume_id = $1 AND kind = 'delta'`,
    [volume.id],
  );
  await fillStep(appliance.database, step!, count, TIB);
  const ours = async () => {
    let streams = 0;
    const begin = performance.now();
    do {
      const { bytes } = await drain(client.stream(DELTA, { 1: base.id, 2: target.id }), false);
      if (bytes < count * 8) throw new Error('the stream was not whole');
      streams++;
    } while (!options.quick && performance.now() - begin < ROUND_MS);
    return (streams * count * 1_000) / (performance.now() - begin);
  };
  await ours();
  // Most offsets of the step have as many bytes as this one.
  const [rates, plain] = await alternate(options.quick ? 1 : 5, ours, () => bareRate(TIB / 2));
  const rate = median(rates);
  const share = rate / median(plain);
  return [
    {
      name: `ranges from the index to a client that does not decode, ${count.toLocaleString('en')} of one step`,
      value: perSecond(rate),
      limit: perSecond(10_000_000),
      baseline: '',
      ok: options.quick || rate >= 10_000_000,
      spread: spread(rates),
    },
    {
      name: 'bytes of that step against bare grpc-js, messages of the same size',
      value: `${Math.round(share * 100)} %`,
      limit: `${SHARE_OF_BARE * 100} %`,
      baseline: `${perSecond(median(plain))} ranges as ready-made messages`,
      ok: options.quick || share >= SHARE_OF_BARE,
    },
  ];
}

const spaced = (count: number, size: number): number[] => {
  const step = Math.floor(size / count / BLOCK) * BLOCK;
  return Array.from({ length: count }, (_, n) => n * step);
};

/** The same ones each time, spread over the volume. */
const random = (count: number, size: number): number[] => {
  const blocks = size / BLOCK;
  const chosen = new Set<number>();
  for (let n = 0; chosen.size < count; n++)
    chosen.add(createHash('md5').update(String(n)).digest().readUIntLE(0, 6) % blocks);
  return [...chosen].sort((a, b) => a - b).map(block => block * BLOCK);
};

async function change(appliance: TestAppliance, volumeId: string, offsets: readonly number[]): Promise<void> {
  const file = await open(await imageOf(appliance, 'volumes', volumeId), 'r+');
  const data = Buffer.alloc(BLOCK, 7);
  for (let at = 0; at < offsets.length; at += 64)
    await Promise.all(offsets.slice(at, at + 64).map(offset => file.write(data, 0, BLOCK, offset)));
  await file.sync();
  await file.close();
}

async function imageOf({ poolPath }: TestAppliance, kind: 'volumes' | 'snapshots', id: string): Promise<string> {
  const entries = await readdir(poolPath, { recursive: true });
  return join(poolPath, entries.find(entry => entry.endsWith(id) && entry.startsWith(kind))!);
}

async function taken(
  appliance: TestAppliance,
  driver: RealDriver,
  { id, name }: { id: string; name: string },
  suffix: string,
) {
  const snapshot = await driver.createSnapshot(id, `${name}-${suffix}`);
  await indexed(appliance, snapshot.id);
  return snapshot;
}

const indexed = ({ database }: TestAppliance, id: string): Promise<boolean> =>
  until(
    'it is indexed',
    async () => {
      const [row] = await database.query<{ index_state: string }>(
        'SELECT index_state FROM trivet.snapshot WHERE id = $1',
        [id],
      );
      if (row?.index_state === 'broken') throw new Error('its step is broken');
      return row?.index_state === 'indexed';
    },
    120_000,
  );

async function chunkBytes({ database }: TestAppliance): Promise<number> {
  const [row] = await database.query<{ bytes: string }>(
    `SELECT pg_total_relation_size('trivet.change_chunk') + pg_total_relation_size('trivet.change_step') AS bytes`,
  );
  return Number(row!.bytes);
}

/** @returns how many blocks differ */
async function compare(paths: readonly [string, string], size: number): Promise<number> {
  const files = await Promise.all(paths.map(path => open(path)));
  const [a, b] = [Buffer.allocUnsafe(MIB), Buffer.allocUnsafe(MIB)];
  let differences = 0;
  for (let at = 0; at < size; at += MIB) {
    await Promise.all([files[0]!.read(a, 0, MIB, at), files[1]!.read(b, 0, MIB, at)]);
    if (a.equals(b)) continue;
    for (let block = 0; block < MIB; block += BLOCK)
      if (a.compare(b, block, block + BLOCK, block, block + BLOCK) !== 0) differences++;
  }
  await Promise.all(files.map(file => file.close()));
  return differences;
}

type Stream = ReturnType<CbtClient['stream']>;

function over(stream: Stream): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.on('error', reject);
    stream.once('status', ({ code, details }) => (code === 0 ? resolve() : reject(new Error(details))));
    stream.resume();
  });
}

/** Reads all of it; counts ranges only where asked, since that is work. */
async function drain(stream: Stream, count = true): Promise<{ ms: number; bytes: number; ranges: number }> {
  let bytes = 0;
  let ranges = 0;
  const begin = performance.now();
  stream.on('data', (message: Buffer) => {
    bytes += message.length;
    if (count) ranges += rangesIn(message);
  });
  await over(stream);
  return { ms: performance.now() - begin, bytes, ranges };
}

/** Fields 3 of a message; 1 and 2 are varints. */
function rangesIn(message: Buffer): number {
  let ranges = 0;
  for (let at = 0; at < message.length; ) {
    if (message[at++] === 0x1a) {
      ranges++;
      at += 1 + message[at]!;
    } else while (message[at++]! > 127);
  }
  return ranges;
}
