import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeObjectBackend } from '#backends/conformance/object-backend.conformance';
import { failsWith, none, plain } from '#backends/conformance/object-world';
import { type GarageHarness, openGarageHarness } from '#test/object-backend/garage-harness';

describeObjectBackend('garage', openGarageHarness, { marksAtOnce: true, quotasAlone: true, plainKeys: true });

describe('a bucket of Garage', () => {
  let garage: GarageHarness;
  beforeAll(async () => {
    garage = await openGarageHarness();
  });
  afterAll(() => garage?.close());

  const newRef = () => ({ name: `${garage.prefix}${randomUUID().slice(0, 8)}`, incarnation: randomUUID() });

  it('that a node left without its mark is taken, once its name was seen absent, and no other one is', async () => {
    const { backend, server } = garage;
    const ref = newRef();
    server.cluster.diesInCreation = true;
    await failsWith(backend.createBucket(ref, plain(), none()), 'unavailable');
    const untagged = { state: 'untagged', empty: true, identity: expect.any(String) };
    expect(await backend.inspectBucket(ref.name, none())).toEqual(untagged);
    await failsWith(backend.createBucket(ref, plain(), none()), 'already_exists');
    await backend.configureBucket(ref, plain({ quotaMaxObjects: '1' }), none());
    expect(await backend.inspectBucket(ref.name, none())).toEqual({ state: 'ours', incarnation: ref.incarnation });
    await garage.seedObjects(ref.name, 1);
    await expect(garage.seedObjects(ref.name, 2)).rejects.toThrow(/quota/);
    expect(await backend.emptyBucket(ref, none())).toEqual({ done: true, removed: 1 });
    expect(await backend.deleteBucket(ref, none())).toBe('deleted');
  });

  it('loses what was begun to be uploaded when it is emptied', async () => {
    const { backend, server } = garage;
    const ref = newRef();
    await backend.createBucket(ref, plain(), none());
    await backend.configureBucket(ref, plain(), none());
    server.cluster.bucketNamed(ref.name)!.uploads.set(randomUUID(), 'half');
    expect(await backend.isBucketEmpty(ref, none())).toBe(false);
    expect(await backend.deleteBucket(ref, none())).toBe('not_empty');
    expect(await backend.emptyBucket(ref, none())).toEqual({ done: true, removed: 1 });
    expect(await backend.deleteBucket(ref, none())).toBe('deleted');
  });

  it('keeps the rights of keys that another appliance made', async () => {
    const { backend, server } = garage;
    const name = newRef().name;
    await garage.seedForeignBucket(name);
    const theirs = server.cluster.createKey('trivet-1 of 0123456789ab');
    server.cluster.allow(server.cluster.bucketNamed(name)!, theirs.id, { read: true }, true);
    await backend.putGrants({ name }, [], none());
    expect(await garage.grants(name)).toEqual([{ uid: 'trivet-1', mode: 'read_only' }]);
  });

  it('is asked for in words when something is wrong', async () => {
    const checks = await garage.backend.diagnose(none());
    expect(checks.map(({ name, ok }) => [name, ok])).toEqual([
      ['admin', true],
      ['key', true],
      ['s3', true],
    ]);
    expect(await garage.refused.diagnose(none())).toMatchObject([
      { name: 'admin', ok: false, detail: expect.stringContaining('check the admin token') },
      { name: 'key', ok: false },
      { name: 's3', ok: true },
    ]);
    expect((await garage.unreachable.diagnose(none())).map(({ ok }) => ok)).toEqual([false, false, false]);
  });
});
