import { once } from 'node:events';
import { createConnection } from 'node:net';
import type { ClientReadableStream } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CbtClient, statusOf } from '#test/cbt/client';
import { S1, TOKEN } from '#test/cbt/in-process-server';
import { ServerProcess } from '#test/cbt/server-process';
import { message } from '#test/cbt/wire';

const MIB = 1024 * 1024;
const CSI = '/csi.v1.SnapshotMetadata/GetMetadataAllocated';
const CSI_DELTA = '/csi.v1.SnapshotMetadata/GetMetadataDelta';
const SIDECAR = '/snapshotmetadata.SnapshotMetadata/GetMetadataAllocated';
const DRAFT = '/SnapshotMetadata/GetDelta';

let server: ServerProcess;
let clients: CbtClient[];
const client = (tls = false): CbtClient => {
  const { socketPath, tlsPort, ca } = server.doors;
  const made = tls ? CbtClient.overTls(tlsPort, ca) : CbtClient.overSocket(socketPath);
  clients.push(made);
  return made;
};

const start = async (ranges: number): Promise<void> => {
  server = await ServerProcess.start(ranges);
};
beforeEach(() => {
  clients = [];
});
afterEach(async () => {
  for (const open of clients) open.close();
  await server.stop();
});

/** Nothing is held any more for streams that are over. */
const idle = () =>
  vi.waitFor(
    async () => {
      const { streams, opened, closed } = await server.size();
      expect(streams).toBe(0);
      expect(closed).toBe(opened);
    },
    { timeout: 20_000, interval: 100 },
  );

describe('memory', () => {
  it('does not follow the length of a stream', async () => {
    await start(10_000_000);
    await collectBytes(client().stream(CSI, { 1: S1, 2: 9_000_000 * 16_384 }));
    const { now } = await server.size('reset');
    const bytes = await collectBytes(client().stream(CSI, { 1: S1 }));
    expect(bytes).toBeGreaterThan(100 * MIB);
    expect((await server.size()).most - now).toBeLessThan(64 * MIB);
  }, 90_000);

  it('does not follow the slowness of fifty readers', async () => {
    await start(20_000_000);
    await collectBytes(client().stream(CSI, { 1: S1, 2: 19_000_000 * 16_384 }));
    const { now } = await server.size('reset');
    // A connection each: what one connection holds up must not be what keeps the others small.
    const streams = Array.from({ length: 50 }, (_, n) =>
      n % 2 ? client(true).stream(SIDECAR, { 1: TOKEN, 2: 'acme', 3: S1 }) : client().stream(CSI, { 1: S1 }),
    );
    await Promise.all(
      streams.map(async stream => {
        stream.on('error', () => {});
        await once(stream, 'readable');
        stream.read();
      }),
    );
    expect((await server.size()).streams).toBe(50);
    for (let round = 0; round < 5; round++) {
      await new Promise(resolve => setTimeout(resolve, 300));
      for (const stream of streams) stream.read();
    }
    expect((await server.size()).most - now).toBeLessThan(96 * MIB);
    for (const stream of streams) stream.cancel();
    await idle();
  }, 90_000);
});

describe('a server that is pestered', () => {
  it('answers bytes of any kind with a status, and goes on', async () => {
    await start(1_000);
    const random = randomFrom(3_314);
    const caller = client();
    const tls = client(true);
    for (let n = 0; n < 300; n++) {
      const bytes = Buffer.from(Array.from({ length: random(64) }, () => random(256)));
      // Half of them begin as a proper request.
      const request = n % 2 ? bytes : Buffer.concat([message({ 1: S1 }), bytes]);
      const path = [CSI, CSI_DELTA, SIDECAR, DRAFT][n % 4]!;
      const { code } = await (path === SIDECAR || path === DRAFT ? tls : caller).call(path, request);
      const expected = ['OK', 'INVALID_ARGUMENT', 'NOT_FOUND', 'OUT_OF_RANGE', 'UNAUTHENTICATED'];
      expect(expected, `${path} ${request.toString('hex')}`).toContain(code);
    }
    for (let n = 0; n < 50; n++) {
      const raw = createConnection(n % 2 ? server.doors.tlsPort : (server.doors.socketPath as never));
      raw.on('error', () => {});
      const closed = new Promise(resolve => raw.once('close', resolve));
      raw.resume();
      raw.end(Buffer.from(Array.from({ length: 1 + random(200) }, () => random(256))));
      await closed;
    }
    expect((await caller.call(CSI, { 1: S1 })).code).toBe('OK');
    await idle();
  }, 60_000);

  it('closes the source of each of thousands of calls that were cancelled early', async () => {
    await start(20_000_000);
    const random = randomFrom(4_133);
    const callers = [client(), client(), client(true)];
    for (let round = 0; round < 20; round++) {
      const ends = Array.from({ length: 100 }, (_, n) => {
        const tls = n % 3 === 2;
        const stream = callers[n % 3]!.stream(tls ? SIDECAR : CSI, tls ? { 1: TOKEN, 2: 'acme', 3: S1 } : { 1: S1 });
        const end = statusOf(stream);
        stream.pause();
        setTimeout(() => stream.cancel(), random(20));
        return end;
      });
      await Promise.all(ends);
    }
    await idle();
    const { code, details } = await callers[0]!.call(CSI, { 1: S1, 2: 19_999_000 * 16_384 });
    expect(code, details).toBe('OK');
  }, 90_000);
});

/** Reads a stream as fast as it comes, without decoding it. Rejects unless it ends with OK. */
async function collectBytes(stream: ClientReadableStream<Buffer>): Promise<number> {
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  const [{ code, details }] = await once(stream, 'status');
  if (code !== 0) throw new Error(details);
  return bytes;
}

/** Numbers below `limit`, the same in each run. */
function randomFrom(seed: number): (limit: number) => number {
  let state = seed;
  return limit => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}
