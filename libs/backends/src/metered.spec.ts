import { describe, expect, it } from 'vitest';
import type { ImageRef } from '#backends/block-backend';
import { type ExtentSource, emptyBatch } from '#backends/extent-source';
import { meteredExtents } from '#backends/metered-extents';
import type { ObjectBackendKind } from '#backends/object-backend';
import { BackendRegistry } from '#backends/registry';
import { StorageError } from '#platform/errors';
import { unleased } from '#platform/lease-signal';
import { backendCallDuration, backendCallsTotal } from '#platform/metrics/metrics';
import { FakeControl } from '#test/fakes/object/fake-control';
import { fakeKind } from '#test/fakes/object/fake-kind';

describe('calls to a backend of the registry', () => {
  it('are counted by method and result, and timed', async () => {
    const control = new FakeControl(':memory:metered');
    const registry = new BackendRegistry([fakeKind as ObjectBackendKind], 'appliance');
    const config = { file: ':memory:metered' };
    const row = { tenantId: 't1', backendId: 'b1', version: 1, kind: 'fake', config, credentials: {} };
    const backend = registry.open(row);
    await backend.inspectBucket('a', unleased(AbortSignal.timeout(5_000)));
    await backend.inspectBucket('b', unleased(AbortSignal.timeout(5_000)));
    control.addFault({ method: 'removePrincipal', mode: 'fail-before', error: 'unavailable' });
    await expect(backend.removePrincipal('u', unleased(AbortSignal.timeout(5_000)))).rejects.toMatchObject({
      kind: 'unavailable',
    });
    registry.close();

    const counted = (await backendCallsTotal.get()).values.map(({ labels, value }) => [
      labels.method,
      labels.result,
      value,
    ]);
    expect(counted).toEqual(
      expect.arrayContaining([
        ['inspectBucket', 'ok', 2],
        ['removePrincipal', 'unavailable', 1],
      ]),
    );
    const timed = (await backendCallDuration.get()).values.filter(({ metricName }) => metricName?.endsWith('_count'));
    expect(timed.map(({ labels, value }) => [labels.backend_kind, labels.method, value])).toContainEqual([
      'fake',
      'inspectBucket',
      2,
    ]);
  });

  it('for ranges are streams, timed for what the source takes', async () => {
    const extents = meteredExtents('ranges', twoBatches);
    const image: ImageRef = { pool: 'p', kind: 'snapshot', id: 'i', folder: '' };
    const left = new AbortController();
    for await (const _ of extents.allocated(image, 0, left.signal));
    for await (const _ of extents.allocated(image, 0, left.signal)) break;
    const failed = extents.changed(image, image, 0, left.signal)[Symbol.asyncIterator]();
    await expect(failed.next()).rejects.toMatchObject({ kind: 'not_found' });
    left.abort(new Error('left'));
    const abandoned = extents.changed(image, image, 0, left.signal)[Symbol.asyncIterator]();
    await expect(abandoned.next()).rejects.toThrow();
    expect(await extents.methodOf('p', left.signal)).toBe('extents');

    const counted = (await backendCallsTotal.get()).values
      .filter(({ labels }) => labels.backend_kind === 'ranges')
      .map(({ labels, value }) => `${labels.method} ${labels.result} ${value}`);
    expect(counted.sort()).toEqual([
      'extents.allocated cancelled 1',
      'extents.allocated ok 1',
      'extents.changed cancelled 1',
      'extents.changed not_found 1',
      'extents.methodOf ok 1',
    ]);
    const timed = (await backendCallDuration.get()).values.filter(
      ({ metricName, labels }) => metricName?.endsWith('_count') && labels.method === 'extents.allocated',
    );
    expect(timed.map(({ value }) => value)).toEqual([2]);
    expect(returned).toEqual(['allocated']);
  });
});

/** Which streams were left before their end. */
const returned: string[] = [];

const twoBatches: ExtentSource = {
  methodOf: async () => 'extents',
  async *allocated() {
    let isWhole = false;
    try {
      yield emptyBatch(1);
      yield emptyBatch(1);
      isWhole = true;
    } finally {
      if (!isWhole) returned.push('allocated');
    }
  },
  // biome-ignore lint/correctness/useYield: it fails before
  async *changed() {
    throw new StorageError('not_found', 'missing');
  },
};
