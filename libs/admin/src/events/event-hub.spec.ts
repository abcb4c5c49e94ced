import { afterEach, expect, it, vi } from 'vitest';
import { EventHub, type Sink } from '#admin/events/event-hub';
import { eventId, type PlacedEvent } from '#admin/events/event-id';
import { compare, type EventSource } from '#admin/events/event-source';

const placed = (xid: number): PlacedEvent => ({ xid: String(xid), seq: '1', source: 'o', at: new Date() });
const EVENTS = [12, 13, 14, 15].map(placed);

let hub: EventHub | undefined;
afterEach(() => hub?.close());

/** Pages of two events; the first one after this transaction waits. */
function slowSource(slow: string) {
  const page = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const state = { bound: 10n, asked: 0 };
  let held = false;
  const source = {
    async bound() {
      state.asked++;
      return state.bound;
    },
    living: async (ids: readonly string[]) => new Set(ids),
    async page(after: PlacedEvent, bound: bigint) {
      if (!held && after.xid === slow) {
        held = true;
        asked.resolve();
        await page.promise;
      }
      const left = EVENTS.filter(event => compare(event, after) > 0 && BigInt(event.xid) < bound);
      const events = left
        .slice(0, 2)
        .map(place => ({ place, tenantId: 't', operationId: null, text: `${place.xid} ` }));
      return { events, next: left.length > 2 ? left[1] : undefined };
    },
  };
  return { source: source as unknown as EventSource, state, page, asked };
}

class MemorySink implements Sink {
  readonly pending = 0;
  ended = false;
  text = '';

  write(text: string): void {
    this.text += text;
  }

  async drained(): Promise<void> {}

  end(): void {
    this.ended = true;
  }

  /** Without ids and pauses of the stream. */
  get heard(): string {
    return this.text.replaceAll(/(id|retry): .*\n\n/g, '').trim();
  }
}

function listen(hub: EventHub, lastEventId?: string): MemorySink {
  const sink = new MemorySink();
  void hub.listen({ tokenId: 'k', userId: 'u', ...(lastEventId === undefined ? {} : { lastEventId }) }, sink);
  return sink;
}

it.each([
  ['first', '10', ''],
  ['second', '13', '12 13'],
])(
  'who resumes while the %s page of a round is read misses nothing, and hears nothing twice',
  async (_, after, heard) => {
    const { source, state, page, asked } = slowSource(after);
    hub = new EventHub(source, { pollMs: 1, heartbeatMs: 60_000, checkMs: 60_000 });
    const first = listen(hub);
    await vi.waitFor(() => expect(first.text).toContain('id: '));
    state.bound = 20n;
    await asked.promise;
    expect(first.heard).toBe(heard);
    // It has heard the first event of the round, by another gateway or before its connection broke.
    const before = state.asked;
    const resumed = listen(hub, eventId(EVENTS[0]!));
    await vi.waitFor(() => expect(state.asked).toBeGreaterThan(before));
    await new Promise(setImmediate);
    page.resolve();
    await vi.waitFor(() => expect(first.heard).toBe('12 13 14 15'));
    await vi.waitFor(() => expect(resumed.heard).toBe('13 14 15'));
  },
);
