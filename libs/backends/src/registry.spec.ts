import { afterEach, describe, expect, it } from 'vitest';
import type { ObjectBackendKind } from '#backends/object-backend';
import {
  addBackendKinds,
  BackendRegistry,
  type BackendRow,
  blockBackendKinds,
  objectBackendKinds,
} from '#backends/registry';
import { unleased } from '#platform/lease-signal';
import { FakeControl } from '#test/fakes/object/fake-control';
import { fakeKind } from '#test/fakes/object/fake-kind';

const kinds = [...objectBackendKinds(), fakeKind as ObjectBackendKind];
const soon = () => unleased(AbortSignal.timeout(10_000));
const row = (given: Partial<BackendRow> = {}): BackendRow => ({
  tenantId: 't1',
  backendId: 'b1',
  version: 1,
  kind: 'fake',
  config: { file: ':memory:registry' },
  credentials: {},
  ...given,
});

describe('registry of backends', () => {
  const control = new FakeControl(':memory:registry');
  let registry = new BackendRegistry(kinds, 'appliance');

  afterEach(() => {
    registry.close();
    registry = new BackendRegistry(kinds, 'appliance');
  });

  it('knows the kinds of production, and those that an entry point adds', () => {
    expect(objectBackendKinds().map(kind => kind.kind)).toEqual(['rgw', 's3', 'azure', 'garage', 'gcs']);
    expect(blockBackendKinds().map(kind => kind.kind)).toEqual(['reflink', 'rbd']);
    expect(() => new BackendRegistry(objectBackendKinds(), 'a').open(row())).toThrow(/no backend of kind fake/);
    addBackendKinds({ object: [fakeKind as ObjectBackendKind], block: [] });
    expect(objectBackendKinds().map(kind => kind.kind)).toEqual(['rgw', 's3', 'azure', 'garage', 'gcs', 'fake']);
    const known = new BackendRegistry(objectBackendKinds(), 'a');
    known.open(row());
    known.close();
  });

  it('opens a row once, and again for a new version', () => {
    const first = registry.open(row());
    expect(registry.open(row())).toBe(first);
    const second = registry.open(row({ version: 2 }));
    expect(second).not.toBe(first);
    expect(registry.open(row({ version: 1 })), 'a stale read').toBe(second);
  });

  it('lets a call end that began on the version before', async () => {
    control.addFault({ method: 'health', mode: 'delay', delayMs: 5 });
    const call = registry.open(row()).health(soon());
    registry.open(row({ version: 2 }));
    await call;
  });

  it('keeps tenants and backends apart', async () => {
    const opened = [row(), row({ tenantId: 't2' }), row({ backendId: 'b2' })].map(one => registry.open(one));
    expect(new Set(opened).size).toBe(3);
    const ref = { name: 'mine', incarnation: 'i' };
    await opened[0]!.createBucket(ref, fakeKind.parseBucketParameters({}), soon());
    expect(await opened[1]!.inspectBucket('mine', soon())).toEqual({
      state: 'foreign',
      byTrivet: false,
      identity: expect.any(String),
    });
    expect(await opened[2]!.inspectBucket('mine', soon())).toEqual({
      state: 'untagged',
      empty: true,
      identity: expect.any(String),
    });
  });

  it('says what is wrong with a row, without its credentials', () => {
    expect(() => registry.open(row({ config: { file: '' } }))).toThrow(expect.objectContaining({ kind: 'internal' }));
    const rgw = row({ kind: 'rgw', config: { endpoint: 'ftp://x', surprise: 1 }, credentials: {} });
    expect(() => registry.open(rgw)).toThrow(/endpoint[\s\S]*|surprise/);
    const config = { endpoint: 'http://127.0.0.1:1' };
    const secret = row({ kind: 'rgw', config, credentials: { accessKeyId: '', secretAccessKey: 'hush-hush' } });
    expect(() => registry.open(secret)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('hush') }),
    );
  });
});
