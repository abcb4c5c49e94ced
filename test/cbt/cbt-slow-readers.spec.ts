import { afterEach, describe, expect, it, vi } from 'vitest';
import { pump } from '#cbt/pump';
import { openRoom, type Room, S1 } from '#test/cbt/in-process-server';
import { synthetic } from '#test/cbt/memory-changes';
import { type Door, PlainReader } from '#test/cbt/plain-reader';

const COUNT = 20_000_000;
/** How many times the time without a sign of life a reader has that takes nothing. */
const LIVING = 30;

let room: Room;
let reader: PlainReader | undefined;
afterEach(async () => {
  reader?.close();
  await room.close();
});

/** A stream of many ranges in a large volume. */
async function openLong(stallMs?: number, count = COUNT): Promise<void> {
  room = await openRoom(stallMs === undefined ? {} : { stallMs });
  room.changes.snapshots.set(S1, { ...room.changes.snapshots.get(S1)!, capacityBytes: count * 16_384 });
  room.changes.batches = from => synthetic(count, from);
}

const ended = () => vi.waitFor(() => expect(room.streams.count).toBe(0), { timeout: 15_000 });

describe.each<Door>(['socket', 'tls'])('a reader by %s that takes no message', door => {
  it('lives as long as its library answers our pings, but not for ever, and is reset when it does not take the status', async () => {
    await openLong(200);
    reader = await PlainReader.open(room, door);
    const began = performance.now();
    await ended();
    expect(performance.now() - began).toBeGreaterThan(LIVING * 200 - 300);
    expect(room.log.text.at(-1)).toMatch(/"code":"RESOURCE_EXHAUSTED".*nothing was read for \d+ ms; go on/);
    await reader.closed;
    expect(reader.request.rstCode).toBe(11);
  });

  it('lives by pings of its own while ours do not reach it', async () => {
    await openLong(400);
    reader = await PlainReader.open(room, door);
    const { session } = reader;
    reader.freeze('from the server');
    const began = performance.now();
    const beat = setInterval(() => void (session.destroyed || session.ping(() => {})), 100);
    try {
      await vi.waitFor(() => expect(performance.now() - began).toBeGreaterThan(2 * 400), { timeout: 5_000 });
    } finally {
      clearInterval(beat);
    }
    expect(room.streams.count).toBe(1);
  });

  it('is ended when nothing is heard of it, and finds out where to go on', async () => {
    await openLong(500);
    reader = await PlainReader.open(room, door);
    const began = performance.now();
    reader.freeze();
    await ended();
    const tookMs = performance.now() - began;
    expect(tookMs).toBeGreaterThan(490);
    expect(tookMs).toBeLessThan(2 * 500);
    expect(room.log.text.at(-1)).toContain('RESOURCE_EXHAUSTED');
    expect(room.changes.closed).toBe(1);
    reader.thaw();
    const { code, details, end } = await reader.takeAll();
    expect(code).toBe('8');
    const said = /nothing was read for \d+ ms, nor heard of the reader; go on with starting_offset (\d+)$/.exec(
      details,
    );
    // Exactly behind what has come.
    expect(end).toBe(BigInt(said![1]!));
  });
});

describe('a slow reader', () => {
  it('gets a small message first, and small ones while it lets us wait', async () => {
    await openLong();
    const counts: number[] = [];
    const source = { batches: synthetic(200_000, 0) };
    const slow = { asked: false };
    const out = {
      send: () => (slow.asked ? new Promise<void>(resolve => setTimeout(resolve, 1_050)) : undefined),
      flushed: async () => {},
      close: vi.fn(),
    };
    const encoder = {
      encode: (_: unknown, from: number, to: number) => {
        counts.push(to - from);
        slow.asked = counts.length >= 6 && counts.length < 10;
        return Buffer.alloc(1);
      },
    };
    await pump(source, encoder, 4_096, out as never, new AbortController().signal, { ranges: 0, bytes: 0 });
    expect(out.close).toHaveBeenCalledOnce();
    expect(counts.slice(0, 4)).toEqual([256, 1_024, 4_096, 2_816]);
    expect(counts.slice(6, 11)).toEqual([1_024, 256, 64, 64, 256]);
  });

  it('lets a reader live that is slow but reads', async () => {
    await openLong(500, 400_000);
    const stream = room.overSocket.stream('/csi.v1.SnapshotMetadata/GetMetadataAllocated', { 1: S1 });
    const started = performance.now();
    let messages = 0;
    for await (const bytes of stream) {
      expect((bytes as Buffer).length).toBeGreaterThan(0);
      if (messages++ < 10) await new Promise(resolve => setTimeout(resolve, 150));
    }
    expect(messages).toBeGreaterThanOrEqual(400_000 / 8_192);
    expect(performance.now() - started).toBeGreaterThan(1_000);
    await vi.waitFor(() => expect(room.log.text.at(-1)).toContain('"ranges":400000'));
  });
});
