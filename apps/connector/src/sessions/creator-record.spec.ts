import { describe, expect, it } from 'vitest';
import { CreatorRecords } from './creator-record.js';
import { CREATOR_ANNOTATION, type SessionRequest } from './resources.js';

const NOW = Date.parse('2026-11-24T12:00:00Z');
const MINUTE = 60_000;
const backup = { username: 'backup' };

/** As it was stored at that time with what these records have signed then. */
function stored(records: CreatorRecords, at: number, createdAt = at): SessionRequest {
  const annotations = { [CREATOR_ANNOTATION]: records.write(backup, 'apps', ['s'], at) };
  const creationTimestamp = new Date(createdAt).toISOString();
  const metadata = { name: 'r', namespace: 'apps', annotations, creationTimestamp };
  return { apiVersion: 'v1', kind: 'SnapshotSessionRequest', metadata, spec: { snapshots: ['s'] } };
}

describe('records of creators, when the certificate has changed', () => {
  const before = CreatorRecords.of('first');
  const after = before.renewed('second', NOW);

  it('are good that were signed before, and while other connectors have the old one', () => {
    for (const at of [NOW - 9 * MINUTE, NOW + 2.5 * MINUTE]) expect(after.read(stored(before, at))).toEqual(backup);
    expect(after.read(stored(after, NOW + 5 * MINUTE))).toEqual(backup);
  });

  it('are not good that were signed later with the old one', () => {
    expect(after.read(stored(before, NOW + 4 * MINUTE))).toBeUndefined();
    expect(after.read(stored(before, NOW, NOW + 5 * MINUTE))).toBeUndefined();
    const third = after.renewed('third', NOW + MINUTE);
    expect(third.read(stored(before, NOW - MINUTE))).toBeUndefined();
  });

  it('say when they are of a key that is not known yet, and not when one is forged', () => {
    expect(before.isOfUnknownKey(stored(after, NOW))).toBe(true);
    expect(after.isOfUnknownKey(stored(before, NOW + 5 * MINUTE))).toBe(false);
    const forged = stored(before, NOW);
    forged.spec = { snapshots: ['other'] };
    expect([before.read(forged), before.isOfUnknownKey(forged)]).toEqual([undefined, false]);
    const { metadata, ...rest } = forged;
    const nothing = ['', 'null', '{}', '[]'].map(text => ({
      ...rest,
      metadata: { ...metadata, annotations: { [CREATOR_ANNOTATION]: text } },
    }));
    expect(nothing.map(each => before.isOfUnknownKey(each))).toEqual([false, false, false, false]);
  });

  it('stay as they are when the key is the same one', () => {
    const same = after.renewed('second', NOW + 9 * MINUTE);
    expect(same.read(stored(before, NOW - MINUTE))).toEqual(backup);
    expect(same.read(stored(before, NOW + 4 * MINUTE))).toBeUndefined();
  });
});
