import { describe, expect, it } from 'vitest';
import { snapshotBody, toSnapshotRequest } from '#csp/snapshot-messages';
import type { SnapshotRequest } from '#storage/block/block-storage';

const asked = (name: string, config: object = {}): SnapshotRequest =>
  toSnapshotRequest(snapshotBody.parse({ name, volume_id: '01930000-0000-7000-8000-000000000001', config }));

describe('a snapshot that is asked for over CSP', () => {
  it.each([
    ['snap-for-clone-2026-11-20T10:32:45+05:30', true],
    ['snap-for-clone-', true],
    ['not-snap-for-clone-really', false],
    ['Snap-for-clone-1', false],
  ])('by the name %s is one that the driver forgets: %s', (name, hidden) => {
    expect(asked(name).hidden).toBe(hidden);
  });

  it.each([
    [{ force: true }, true],
    [{ force: 'true' }, true],
    [{ force: 'yes' }, false],
    [{}, false],
  ])('with %j may stall its writers: %s', (config, force) => {
    expect(asked('a', config)).toMatchObject({ force, config });
  });
});
