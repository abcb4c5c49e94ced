import type { EventPlace } from '#operations/administration/event-log';

/** `<transaction>-<number>-<source>-<second>`: a place in the order of events, and when that was. Opaque to clients. */
const FORM = /^(\d{1,18})-(\d{1,18})-([oa])-(\d{1,11})$/;

export interface PlacedEvent extends EventPlace {
  at: Date;
}

export const eventId = ({ xid, seq, source, at }: PlacedEvent): string =>
  `${xid}-${seq}-${source}-${Math.trunc(at.getTime() / 1_000)}`;

export function parseEventId(id: string): PlacedEvent | undefined {
  const [, xid, seq, source, second] = FORM.exec(id) ?? [];
  if (!xid || !seq || !second) return undefined;
  return { xid, seq, source: source as 'o' | 'a', at: new Date(Number(second) * 1_000) };
}

/** All transactions below this one were told. */
export const before = (xid: bigint, at = new Date()): PlacedEvent => ({ xid: String(xid), seq: '0', source: 'o', at });
