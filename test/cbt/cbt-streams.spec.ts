import { once } from 'node:events';
import { connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import type { ClientReadableStream } from '@grpc/grpc-js';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { pump } from '#cbt/pump';
import { CbtClient, collect, rangesOf } from '#test/cbt/client';
import { synthetic } from '#test/cbt/memory-changes';
import { openRoom, type Room, S1, TENANT, TOKEN } from '#test/cbt/room';
import { message, metadataOf } from '#test/cbt/wire';

const CSI = '/csi.v1.SnapshotMetadata/GetMetadataAllocated';
const TLS = '/snapshotmetadata.SnapshotMetadata/GetMetadataAllocated';
const overTls = { 1: TOKEN, 2: 'acme', 3: S1 };

let room: Room;
afterEach(() => room.close());

/** A stream of many ranges in a large volume. */
async function openLong(count: number, options: Parameters<typeof openRoom>[0] = {}): Promise<void> {
  room = await openRoom(options);
  room.changes.snapshots.set(S1, { ...room.changes.snapshots.get(S1)!, capacityBytes: count * 16_384 });
  room.changes.batches = from => synthetic(count, from);
}

const firstMessage = (stream: ClientReadableStream<Buffer>) => once(stream, 'data');

/** Where the last range of a stream's bytes ends. */
function lastEnd(bytes: Buffer): bigint {
  let end = 0n;
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at + 1);
    const { ranges } = metadataOf(bytes.subarray(at + 5, at + 5 + length));
    const [offset, size] = ranges.at(-1)!;
    end = offset + size;
    at += 5 + length;
  }
  return end;
}

/** Everything the server holds for streams is given back. */
const allClosed = () =>
  vi.waitFor(() => {
    expect(room.streams.count).toBe(0);
    expect(room.changes.closed).toBe(room.changes.opened);
  });

describe('a long stream', () => {
  it('arrives whole, in messages below 4 MiB, and goes on from any offset', async () => {
    await openLong(200_000);
    const all = rangesOf(await room.overSocket.call(CSI, { 1: S1 }));
    expect(all.length).toBe(200_000);
    expect(all[199_999]).toEqual([199_999n * 16_384n, 4_096n]);
    const huge = await room.overTls.call(TLS, { ...overTls, 5: 2_147_483_647 });
    expect(rangesOf(huge).length).toBe(200_000);
    for (const at of [1, 4_095, 150_000]) {
      const [offset, length] = all[at]!;
      const rest = rangesOf(await room.overSocket.call(CSI, { 1: S1, 2: offset + length }));
      expect([...all.slice(0, at + 1), ...rest].join(' ') === all.join(' '), `from range ${at}`).toBe(true);
    }
  }, 60_000);

  it('is pulled no further than its reader goes', async () => {
    await openLong(20_000_000);
    const stream = room.overSocket.stream(CSI, { 1: S1 });
    await firstMessage(stream);
    stream.pause();
    await vi.waitFor(async () => {
      const { pulled } = room.changes;
      await new Promise(resolve => setTimeout(resolve, 100));
      expect(room.changes.pulled).toBe(pulled);
    });
    // Some messages at both ends and the windows between them.
    expect(room.changes.pulled).toBeLessThan(100);
    stream.cancel();
    stream.on('error', () => {});
    await allClosed();
  });

  it('ends its source when the caller cancels, and when its connection is gone', async () => {
    await openLong(20_000_000);
    const cancelled = room.overTls.stream(TLS, overTls);
    const answer = collect(cancelled);
    await firstMessage(cancelled);
    cancelled.cancel();
    expect((await answer).code).toBe('CANCELLED');
    await allClosed();
    const other = CbtClient.overSocket(room.socketPath);
    const dropped = other.stream(CSI, { 1: S1 });
    dropped.on('error', () => {});
    await firstMessage(dropped);
    dropped.pause();
    dropped.cancel();
    other.close();
    await allClosed();
    expect(room.log.lines.at(-1)).toContain('CANCELLED');
  });

  it('ends at the deadline of its caller, also when the source does not heed it', async () => {
    await openLong(20_000_000);
    room.changes.deaf = true;
    const answer = await room.overSocket.call(CSI, { 1: S1 }, { deadline: Date.now() + 200 });
    expect(answer.code).toBe('DEADLINE_EXCEEDED');
    await vi.waitFor(() => expect(room.streams.count).toBe(0));
    room.changes.deaf = false;
    const slow = room.overSocket.stream(CSI, { 1: S1 }, { deadline: Date.now() + 300 });
    const end = collect(slow);
    slow.pause();
    expect((await end).code).toBe('DEADLINE_EXCEEDED');
    await vi.waitFor(() => expect(room.streams.count).toBe(0));
  });

  /** grpc-js's client reads from its connection although it is paused, so this one is plain HTTP/2. */
  async function openPlain() {
    const session = connect('http://localhost', { createConnection: () => connectSocket(room.socketPath) });
    session.on('error', () => {});
    const request = session.request({
      ':method': 'POST',
      ':path': CSI,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const body = message({ 1: S1 });
    request.end(Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), body]));
    request.on('error', () => {});
    const trailers = new Promise<Record<string, unknown>>(resolve => request.once('trailers', resolve));
    const closed = new Promise(resolve => request.once('close', resolve));
    await once(request, 'response');
    return { session, request, trailers, closed };
  }
  const ended = () => vi.waitFor(() => expect(room.streams.count).toBe(0), { timeout: 15_000 });

  it('ends when nothing is heard of its reader for too long, which finds out where to go on', async () => {
    await openLong(20_000_000, { stallMs: 500 });
    const { session, request, trailers } = await openPlain();
    await ended();
    expect(room.log.lines.at(-1)).toContain('RESOURCE_EXHAUSTED');
    expect(room.changes.closed).toBe(1);
    const messages: Buffer[] = [];
    request.on('data', (bytes: Buffer) => messages.push(bytes));
    const { 'grpc-status': status, 'grpc-message': details } = await trailers;
    expect(status).toBe('8');
    const [, offset] = /nothing was read.*go on with starting_offset (\d+)$/.exec(decodeURIComponent(String(details)))!;
    // Exactly behind what has come.
    expect(lastEnd(Buffer.concat(messages))).toBe(BigInt(offset!));
    session.destroy();
  });

  it('is reset when its reader does not even take the status', async () => {
    await openLong(20_000_000, { stallMs: 200 });
    const { session, request, closed } = await openPlain();
    await ended();
    await closed;
    expect(request.rstCode).toBe(11);
    session.close();
  });

  it('lives as long as something is heard of its reader, but not for ever', async () => {
    await openLong(20_000_000, { stallMs: 150 });
    const { session, request } = await openPlain();
    const began = performance.now();
    const beat = setInterval(() => session.ping(() => {}), 40);
    try {
      await ended();
    } finally {
      clearInterval(beat);
    }
    expect(performance.now() - began).toBeGreaterThan(30 * 150 - 300);
    expect(room.log.lines.at(-1)).toMatch(/nothing was read for \d+ ms; go on/);
    request.close();
    session.destroy();
  });

  it('begins with a small message, and its messages become small for a slow reader', async () => {
    await openLong(20_000_000);
    const counts: number[] = [];
    const source = { batches: synthetic(200_000, 0) };
    const slow = { asked: false };
    const out = {
      send: () => (slow.asked ? new Promise<void>(resolve => setTimeout(resolve, 1_050)) : undefined),
      flushed: async () => {},
    };
    const encoder = {
      encode: (_: unknown, from: number, to: number) => {
        counts.push(to - from);
        slow.asked = counts.length >= 6 && counts.length < 10;
        return Buffer.alloc(1);
      },
    };
    await pump(source, encoder, 4_096, out as never, new AbortController().signal, { ranges: 0, bytes: 0 });
    expect(counts.slice(0, 4)).toEqual([256, 1_024, 4_096, 2_816]);
    expect(counts.slice(6, 11)).toEqual([1_024, 256, 64, 64, 256]);
  });

  it('lets a reader live that is slow but reads', async () => {
    await openLong(400_000, { stallMs: 500 });
    const stream = room.overSocket.stream(CSI, { 1: S1 });
    const started = performance.now();
    let messages = 0;
    for await (const bytes of stream) {
      expect((bytes as Buffer).length).toBeGreaterThan(0);
      if (messages++ < 10) await new Promise(resolve => setTimeout(resolve, 150));
    }
    expect(messages).toBeGreaterThanOrEqual(400_000 / 8_192);
    expect(performance.now() - started).toBeGreaterThan(1_000);
    await vi.waitFor(() => expect(room.log.lines.at(-1)).toContain('"ranges":400000'));
  });
});

describe('a server that stops', () => {
  it('ends streams with UNAVAILABLE, whether or not they are read, and lets none begin', async () => {
    await openLong(20_000_000);
    const read = room.overTls.stream(TLS, overTls);
    const unread = room.overSocket.stream(CSI, { 1: S1 });
    const ends = [collect(read), collect(unread)];
    await Promise.all([firstMessage(read), firstMessage(unread)]);
    unread.pause();
    const closed = room.server.close(3_000);
    unread.resume();
    expect((await Promise.all(ends)).map(({ code }) => code)).toEqual(['UNAVAILABLE', 'UNAVAILABLE']);
    await closed;
    expect(room.streams.count).toBe(0);
    expect(() => room.streams.open()).toThrow('stopping');
    expect((await room.overTls.call(TLS, overTls, { deadline: Date.now() + 2_000 })).code).toBe('UNAVAILABLE');
  });

  it('ends the streams of a tenant that is suspended, on every door', async () => {
    await openLong(20_000_000);
    const streams = [room.overTls.stream(TLS, overTls), room.overSocket.stream(CSI, { 1: S1 })];
    const ends = streams.map(collect);
    await Promise.all(streams.map(firstMessage));
    room.streams.endTenant('tenant-2');
    expect(room.streams.count).toBe(2);
    room.streams.endTenant(TENANT);
    expect((await Promise.all(ends)).map(({ code }) => code)).toEqual(['UNAVAILABLE', 'UNAVAILABLE']);
  });

  it('ends the streams of a socket that is closed, and no others of the tenant', async () => {
    await openLong(20_000_000);
    const path = `${room.socketPath}.2`;
    const close = await room.server.openSocket(TENANT, { path }, () => 'csi.second');
    const second = CbtClient.overSocket(path);
    try {
      expect((await second.unary('/csi.v1.Identity/GetPluginInfo')).toString()).toContain('csi.second');
      const [ended, goesOn] = [second.stream(CSI, { 1: S1 }), room.overSocket.stream(CSI, { 1: S1 })];
      const [end, end2] = [collect(ended), collect(goesOn)];
      await Promise.all([ended, goesOn].map(firstMessage));
      await Promise.all([close(1_000), expect(end).resolves.toMatchObject({ code: 'UNAVAILABLE' })]);
      expect(room.streams.count).toBe(1);
      goesOn.cancel();
      expect((await end2).code).toBe('CANCELLED');
      await allClosed();
    } finally {
      second.close();
    }
  });

  it('refuses more streams than it can hold', async () => {
    await openLong(20_000_000, { streams: 2 });
    const streams = [room.overTls.stream(TLS, overTls), room.overTls.stream(TLS, overTls)];
    const ends = streams.map(collect);
    await Promise.all(streams.map(firstMessage));
    expect((await room.overSocket.call(CSI, { 1: S1 })).code).toBe('UNAVAILABLE');
    for (const stream of streams) stream.cancel();
    await Promise.all(ends);
    await allClosed();
  });
});
