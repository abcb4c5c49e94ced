import { once } from 'node:events';
import type { ClientReadableStream } from '@grpc/grpc-js';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { CbtClient, collect, rangesOf } from '#test/cbt/client';
import { openRoom, type Room, S1, TENANT, TOKEN, VOLUME } from '#test/cbt/in-process-server';
import { synthetic } from '#test/cbt/memory-changes';

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
    expect(room.log.text.at(-1)).toContain('CANCELLED');
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
});

describe('a stream whose session is over', () => {
  it.each([
    ['the community’s form', TLS, overTls],
    ['the draft', '/SnapshotMetadata/GetAllocated', { 1: TOKEN, 2: VOLUME, 3: S1 }],
  ])('is let finish, whole, while no other begins: %s', async (_, path, request) => {
    await openLong(1_000_000);
    const stream = room.overTls.stream(path, request);
    const whole = collect(stream);
    await firstMessage(stream);
    stream.pause();
    expect(room.streams.count).toBe(1);
    room.sessions.sessions.delete(TOKEN);
    expect((await room.overTls.call(path, request)).code).toBe('UNAUTHENTICATED');
    stream.resume();
    const answer = await whole;
    expect(answer.code, answer.details).toBe('OK');
    expect(rangesOf(answer).length).toBe(1_000_000);
    await allClosed();
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
    const { close } = await room.server.openSocket(TENANT, { path }, () => 'csi.second');
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
