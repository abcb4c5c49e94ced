import { randomBytes, randomUUID } from 'node:crypto';
import { CreateMultipartUploadCommand } from '@aws-sdk/client-s3';
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

  it.skipIf(process.env.TRIVET_TEST_GARAGE)(
    'that a node left without its mark is taken once its name was seen absent',
    async () => {
      const { backend, standIn } = garage;
      const ref = newRef();
      standIn!.diesInCreation = true;
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
    },
  );

  it('loses what was begun to be uploaded when it is emptied', async () => {
    const { backend, parts } = garage;
    const ref = newRef();
    await backend.createBucket(ref, plain(), none());
    await backend.configureBucket(ref, plain(), none());
    const owner = garage.clientFor(parts.credentials);
    await owner.send(new CreateMultipartUploadCommand({ Bucket: ref.name, Key: 'half' }));
    expect(await backend.isBucketEmpty(ref, none())).toBe(false);
    expect(await backend.deleteBucket(ref, none())).toBe('not_empty');
    expect(await backend.emptyBucket(ref, none())).toEqual({ done: true, removed: 1 });
    expect(await backend.deleteBucket(ref, none())).toBe('deleted');
  });

  it('keeps the rights of keys that another appliance made', async () => {
    const { backend, admin } = garage;
    const { name } = newRef();
    await garage.seedForeignBucket(name);
    const { accessKeyId } = await admin.post('CreateKey', { name: 'trivet-1 of 0123456789ab' });
    const { id: bucketId } = await admin.get('GetBucketInfo', { globalAlias: name });
    await admin.post('AllowBucketKey', { bucketId, accessKeyId, permissions: { read: true } });
    await backend.putGrants({ name }, [], none());
    expect(await garage.grants(name)).toEqual([{ uid: 'trivet-1', mode: 'read_only' }]);
  });

  // Of more the list tells nothing: one that is not seen would stay, or be made again.
  it.skipIf(process.env.TRIVET_TEST_GARAGE)('is not to have a key more than Garage lists, and loses none', async () => {
    const { backend, standIn } = garage;
    const ref = newRef();
    await backend.createBucket(ref, plain(), none());
    await backend.configureBucket(ref, plain(), none());
    const newKey = () => ({
      accessKeyId: `GK${randomBytes(12).toString('hex')}`,
      secretAccessKey: randomBytes(32).toString('hex'),
    });
    const principal = { uid: `trivet-${randomUUID()}`, displayName: 'limited', ...newKey() };
    const grants = [{ uid: principal.uid, mode: 'read_only' as const }];
    await backend.putPrincipal(principal, none());
    await backend.putGrants(ref, grants, none());
    const others = Array.from({ length: 9_999 - standIn!.keys.size }, () => standIn!.createKey('of somebody else').id);
    expect(await backend.holdsPrincipal(principal, none())).toBe(true);
    expect(await backend.holdsGrants(ref, grants, none())).toBe(true);

    others.push(standIn!.createKey('the last that is listed').id);
    const before = [...standIn!.keys.keys()];
    const next = { ...principal, beside: [newKey()] };
    for (const refused of [
      () => backend.putPrincipal(next, none()),
      () => backend.holdsPrincipal(principal, none()),
      () => backend.removeKey(principal, none()),
      () => backend.removePrincipal(principal.uid, none()),
    ])
      await expect(refused()).rejects.toMatchObject({
        kind: 'resource_exhausted',
        message: expect.stringContaining('507 TooManyKeys'),
      });
    expect([...standIn!.keys.keys()]).toEqual(before);
    expect(await garage.grants(ref.name)).toEqual(grants);

    for (const id of others) standIn!.deleteKey(id);
    await backend.putPrincipal(next, none());
    await backend.removePrincipal(principal.uid, none());
    expect(await garage.principalKeys(principal.uid)).toBeUndefined();
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
