import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ObjectBackend } from '#backends/object-backend';
import { unleased } from '#platform/lease-signal';
import { FakeControl } from '#test/fakes/object/fake-control';
import { fakeKind } from '#test/fakes/object/fake-kind';

const spec = fakeKind.parseBucketParameters({});
const soon = () => unleased(AbortSignal.timeout(30_000));

describe('faults of the fake', () => {
  let control: FakeControl;
  let backend: ObjectBackend;
  const bucket = { name: 'photos', incarnation: '7d1f2a34-0000-4000-8000-000000000001' };
  const create = (signal = soon()) => backend.createBucket(bucket, spec, signal);

  beforeEach(() => {
    const file = `:memory:${randomUUID()}`;
    control = new FakeControl(file);
    backend = fakeKind.open(fakeKind.parseConfig({ file }), {}, { applianceId: 'a', tenantId: 't' });
  });
  afterEach(() => {
    backend.close();
    control.close();
  });

  it('fails before the effect, as often as ordered', async () => {
    control.addFault({ method: 'createBucket', mode: 'fail-before', error: 'unavailable', count: 2 });
    await expect(create()).rejects.toMatchObject({ kind: 'unavailable' });
    await expect(create()).rejects.toMatchObject({ kind: 'unavailable' });
    expect(control.buckets()).toEqual([]);
    await create();
    expect(control.buckets()).toHaveLength(1);
  });

  it('fails after the effect', async () => {
    control.addFault({ mode: 'fail-after', error: 'timeout' });
    await expect(create()).rejects.toMatchObject({ kind: 'timeout' });
    expect(control.buckets()).toHaveLength(1);
  });

  it.each([
    ['hang', 0],
    ['hang-after', 1],
  ] as const)('%s answers only to the signal', async (mode, buckets) => {
    control.addFault({ mode });
    const abort = new AbortController();
    let settled = false;
    const call = create(unleased(abort.signal)).finally(() => {
      settled = true;
    });
    call.catch(() => {});
    await new Promise(resolve => setImmediate(resolve));
    expect(settled).toBe(false);
    abort.abort();
    await expect(call).rejects.toMatchObject({ kind: 'timeout' });
    expect(control.buckets()).toHaveLength(buckets);
  });

  it('delays, and gives up when the signal fires meanwhile', async () => {
    control.addFault({ mode: 'delay', delayMs: 3_600_000, method: 'createBucket' });
    const abort = new AbortController();
    const call = create(unleased(abort.signal));
    abort.abort();
    await expect(call).rejects.toMatchObject({ kind: 'timeout' });
    expect(control.buckets()).toEqual([]);
    control.addFault({ mode: 'delay', delayMs: 1 });
    await create();
    expect(control.buckets()).toHaveLength(1);
  });

  it('delivers an old call late, without the checks that its caller made', async () => {
    await create();
    await backend.configureBucket(bucket, spec, soon());
    control.addFault({ method: 'deleteBucket', mode: 'late' });
    await expect(backend.deleteBucket(bucket, soon())).rejects.toMatchObject({ kind: 'timeout' });
    expect(control.bucket('photos')).toBeDefined();

    // A new life of the name begins before the old delete arrives: the store cannot tell them apart.
    await backend.deleteBucket(bucket, soon());
    const next = { name: 'photos', incarnation: '7d1f2a34-0000-4000-8000-000000000002' };
    await backend.createBucket(next, spec, soon());
    await backend.configureBucket(next, spec, soon());
    expect(control.deliverLate()).toBe(1);
    expect(control.bucket('photos')).toBeUndefined();
    expect(control.deliverLate()).toBe(0);
    expect(control.calls({ method: 'deleteBucket' }).map(row => [row.phase, row.outcome])).toEqual([
      ['begin', null],
      ['end', 'timeout'],
      ['begin', null],
      ['effect', 'deleted'],
      ['end', 'ok'],
      ['effect', 'late deleted'],
    ]);
  });

  it('holds a call until that is lifted, or its signal fires', async () => {
    const held = control.addFault({ mode: 'hold', method: 'createBucket', count: 2 });
    await expect(create(unleased(AbortSignal.timeout(20)))).rejects.toMatchObject({ kind: 'timeout' });
    const created = create();
    expect(control.faultRemaining(held)).toBe(0);
    expect(control.buckets()).toEqual([]);
    control.liftFault(held);
    await created;
    expect(control.buckets()).toHaveLength(1);
  });

  it('delivers late by itself when a delay is given', async () => {
    control.addFault({ mode: 'late', delayMs: 1 });
    await expect(create()).rejects.toMatchObject({ kind: 'timeout' });
    await expect.poll(() => control.buckets().length).toBe(1);
  });

  it('meets only the calls that match', async () => {
    const fault = control.addFault({ method: 'deleteBucket', resource: 'photo?', mode: 'fail-before' });
    await create();
    expect(control.faultRemaining(fault)).toBe(1);
    await expect(backend.deleteBucket(bucket, soon())).rejects.toMatchObject({ kind: 'unavailable' });
    expect(control.faultRemaining(fault)).toBe(0);
  });

  it('logs what each call did, and tells a repeat from a first effect', async () => {
    await create();
    await create();
    const effects = control.calls({ method: 'createBucket' }).filter(row => row.phase === 'effect');
    expect(effects.map(row => row.outcome)).toEqual(['created', 'unchanged']);
    expect(effects[0]).toMatchObject({ resource: 'photos', incarnation: bucket.incarnation, pid: process.pid });
  });

  it('lets calls under way end when it is closed', async () => {
    control.addFault({ mode: 'delay', delayMs: 1 });
    const call = create();
    backend.close();
    await call;
    expect(control.buckets()).toHaveLength(1);
    backend = fakeKind.open(fakeKind.parseConfig({ file: ':memory:closed' }), {}, { applianceId: 'a', tenantId: 't' });
  });
});
