import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, collect } from '#test/cbt/client';
import { CAPACITY, DELETED, openRoom, type Room, S1, S2, UNKNOWN } from '#test/cbt/in-process-server';
import type { Value } from '#test/cbt/wire';

const ALLOCATED = '/csi.v1.SnapshotMetadata/GetMetadataAllocated';
const DELTA = '/csi.v1.SnapshotMetadata/GetMetadataDelta';
const END = 2n ** 40n + 512n;

/**
 * What the community's lister prints as JSON of what its sidecar passes on (external-snapshot-metadata 1.1, seen with both):
 * a record for each message, `null` instead of the list in one without ranges, and `[]` when none came.
 */
function listed({ messages }: Pick<Answer, 'messages'>): string {
  const records = messages.map(({ type, capacity, ranges }) => {
    const list = ranges.map(([offset, size]) => `{"byte_offset":${offset},"size_bytes":${size}}`);
    const head = `"block_metadata_type":${type},"volume_capacity_bytes":${capacity}`;
    return `{${head},"block_metadata":${list.length > 0 ? `[${list.join()}]` : 'null'}}`;
  });
  return `[${records.join()}]`;
}

const record = (...ranges: [offset: bigint, size: bigint][]) => ({ type: 2n, capacity: BigInt(CAPACITY), ranges });
const [A, B, C] = [record([0n, 4_096n]), record([2n ** 20n, 65_536n]), record([2n ** 40n, 512n])];

/** The calls as the sidecar makes them: it sends empty fields not at all, and asks with 0 when its caller did not say. */
const CALLS: [name: string, path: string, fields: Record<number, Value>, messages: Answer['messages']][] = [
  ['all that is allocated', ALLOCATED, { 1: S1 }, [record([0n, 4_096n], [2n ** 20n, 65_536n], [2n ** 40n, 512n])]],
  ['one range a record', ALLOCATED, { 1: S1, 3: 1 }, [A, B, C]],
  ['from the end of the second range', ALLOCATED, { 1: S1, 2: 2n ** 20n + 65_536n }, [C]],
  ['from the end of the last range', ALLOCATED, { 1: S1, 2: END }, []],
  ['from the capacity', ALLOCATED, { 1: S1, 2: BigInt(CAPACITY) }, []],
  ['a delta without changes', DELTA, { 1: S2, 2: S2 }, []],
  ['a delta of a deleted base', DELTA, { 1: DELETED, 2: S1, 4: 1 }, [A, B, C]],
];

let room: Room;
beforeAll(async () => {
  room = await openRoom();
});
afterAll(() => room.close());

describe("what the community's lister prints", () => {
  it.each(CALLS)('of %s', async (_name, path, fields, messages) => {
    const answer = await collect(room.overSocket.stream(path, fields));
    expect(answer.code).toBe('OK');
    expect(listed(answer)).toBe(listed({ messages }));
    // Who goes through the lists of all records stumbles over it.
    expect(listed(answer)).not.toContain('null');
  });

  it('nothing of a base that nobody knows, so that its caller makes a full backup', async () => {
    const { code, messages } = await room.overSocket.call(DELTA, { 1: UNKNOWN, 2: S1 });
    expect([code, messages]).toEqual(['NOT_FOUND', []]);
  });
});
