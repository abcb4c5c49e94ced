import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ObjectBackendKind } from '#backends/object-backend';
import { BackendRegistry, objectBackendKinds } from '#backends/registry';
import { Database } from '#platform/database/database';
import { type BackendPlace, registerBucket } from '#storage/object/buckets/register-bucket';
import { BackendDirectory } from '#storage/shared/backend-directory';
import { readApplianceId } from '#tenancy/tenants/appliance';
import type { CosiClient } from '#test/cosi/client';
import { fakeKind } from '#test/fakes/object/fake-kind';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/** One key, one effect (invariants E1, E3; promise P2): repeats, conflicts, new lives. */
let appliance: TestAppliance;
let client: CosiClient;
beforeAll(async () => {
  appliance = await TestAppliance.start({ backend: 'fake', env: { TRIVET_LEASE_MS: '12000' } });
  client = appliance.client();
});
afterAll(() => appliance?.close());
afterEach(() => appliance.fake!.clearFaults());

const create = (name: string, parameters: Record<string, string> = {}) =>
  client.call('v1alpha1', 'DriverCreateBucket', { name, parameters });
const remove = (bucket_id: string) => client.call('v1alpha1', 'DriverDeleteBucket', { bucket_id });
const grant = (name: string, bucket_id: string, parameters: Record<string, string> = {}) =>
  client.call('v1alpha1', 'DriverGrantBucketAccess', { name, bucket_id, parameters, authentication_type: 'Key' });
const revoke = (account_id: string, bucket_id: string) =>
  client.call('v1alpha1', 'DriverRevokeBucketAccess', { account_id, bucket_id });
/** Several buckets need v1alpha2. */
const grantMany = (account_name: string, buckets: string[]) =>
  client.call('r1', 'DriverGrantBucketAccess', {
    account_name,
    protocol: { type: 'S3' },
    authentication_type: { type: 'KEY' },
    buckets: buckets.map(bucket_id => ({ bucket_id, access_mode: { mode: 'READ_WRITE' } })),
  });
const revokeMany = (account_id: string, buckets: string[]) =>
  client.call('r1', 'DriverRevokeBucketAccess', {
    account_id,
    protocol: { type: 'S3' },
    authentication_type: { type: 'KEY' },
    buckets: buckets.map(bucket_id => ({ bucket_id })),
  });
const count = async (name: string) => (await appliance.operations(`resource_name = '${name}'`)).length;
const begins = (method: string, resource: string) =>
  appliance.fake!.calls({ method, resource }).filter(({ phase }) => phase === 'begin').length;

describe('one key', () => {
  it('makes one bucket of 20 identical calls at once', async () => {
    const clients = [client, appliance.client(), appliance.client(), appliance.client()];
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        clients[n % 4]!.call('v1alpha1', 'DriverCreateBucket', { name: 'together' }),
      ),
    );
    for (const outcome of outcomes) expect(outcome).toMatchObject({ code: 'OK', reply: { bucket_id: 'together' } });
    expect(await count('together')).toBe(1);
    expect(begins('createBucket', 'together')).toBe(1);
  });

  it('makes one account of 20 identical grants at once, and tells all the same key', async () => {
    await create('shared');
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => grant('ba-together', 'shared')));
    const replies = new Set(outcomes.map(({ code, message, reply }) => JSON.stringify([code, message, reply])));
    expect([...replies]).toHaveLength(1);
    expect(outcomes[0]!.code).toBe('OK');
    expect(await count('ba-together')).toBe(1);
    const uid = outcomes[0]!.reply.account_id;
    expect(begins('putPrincipal', uid)).toBe(1);
    expect(appliance.fake!.keys(uid)).toHaveLength(1);
  });

  it('loses none of 20 different grants at once on one bucket', async () => {
    await create('crowded');
    const outcomes = await Promise.all(Array.from({ length: 20 }, (_, n) => grant(`ba-crowd-${n}`, 'crowded')));
    expect(outcomes.map(({ code }) => code)).toEqual(Array(20).fill('OK'));
    const granted = appliance.fake!.grants('crowded').map(({ uid }) => uid);
    expect(granted.sort()).toEqual(outcomes.map(({ reply }) => reply.account_id).sort());
    const revoked = await Promise.all(outcomes.map(({ reply }) => revoke(reply.account_id, 'crowded')));
    expect(revoked.map(({ code }) => code)).toEqual(Array(20).fill('OK'));
    expect(appliance.fake!.grants('crowded')).toEqual([]);
    const uids = new Set(outcomes.map(({ reply }) => reply.account_id));
    expect(appliance.fake!.principals().filter(({ uid }) => uids.has(uid))).toEqual([]);
  });

  it('refuses the same name with other parameters, and names what differs', async () => {
    expect(await create('other', { quotaMaxObjects: '10' })).toMatchObject({ code: 'OK' });
    const differing = await create('other', { quotaMaxObjects: '20', versioning: 'true' });
    expect(differing.code).toBe('ALREADY_EXISTS');
    expect(differing.message).toContain('quotaMaxObjects');
    expect(differing.message).toContain('versioning');
    expect(differing.message).not.toMatch(/tags|objectLock|region/);
    await create('other-2');
    expect(await grant('ba-other', 'other')).toMatchObject({ code: 'OK' });
    const elsewhere = await grant('ba-other', 'other-2');
    expect(elsewhere.code).toBe('ALREADY_EXISTS');
    expect(elsewhere.message).toMatch(/another request: bucket_id$/);
    expect(await grant('ba-other', 'other', { accessMode: 'ReadOnly' })).toMatchObject({ code: 'ALREADY_EXISTS' });
  });

  it('answers an identical request of another package and revision from the same row', async () => {
    expect(await create('alike', { versioning: 'true' })).toMatchObject({ code: 'OK' });
    const operations = await count('alike');
    for (const dialect of ['r1', 'r2', 'r3', 'r4'] as const) {
      const outcome = await client.call(dialect, 'DriverCreateBucket', {
        [dialect === 'r4' ? 'bucket_id' : 'name']: 'alike',
        parameters: { versioning: 'true' },
      });
      expect(outcome.code, `${dialect}: ${outcome.message}`).toBe('OK');
    }
    expect(await count('alike')).toBe(operations);
  });
});

describe('one request in five spellings', () => {
  it('is one grant, with one account', async () => {
    await create('spelled');
    const first = await grant('ba-spelled', 'spelled', { accessMode: 'WriteOnly' });
    expect(first.code, first.message).toBe('OK');
    const mode = { mode: 'WRITE_ONLY' };
    const any = { mode: 'ANY' };
    const split = {
      object_data_access_mode: mode,
      object_metadata_access_mode: any,
      bucket_metadata_access_mode: any,
    };
    for (const dialect of ['r1', 'r2', 'r3', 'r4'] as const) {
      const modes = dialect === 'r1' || dialect === 'r2' ? { access_mode: mode } : split;
      const outcome = await client.call(dialect, 'DriverGrantBucketAccess', {
        account_name: 'ba-spelled',
        protocol: { type: 'S3' },
        authentication_type: { type: 'KEY' },
        buckets: [{ bucket_id: 'spelled', ...modes }],
      });
      expect(outcome.code, `${dialect}: ${outcome.message}`).toBe('OK');
      expect(outcome.reply.account_id).toBe(first.reply.account_id);
      const { accessSecretKey } = first.reply.credentials.s3.secrets;
      expect(outcome.reply.credentials.s3.access_secret_key).toBe(accessSecretKey);
    }
    expect(await count('ba-spelled')).toBe(1);
  });
});

describe('new lives', () => {
  it('frees the key of a creation that failed without effect: another request is another operation', async () => {
    appliance.fake!.seedForeignBucket('taken', 1);
    expect(await create('taken')).toMatchObject({ code: 'ALREADY_EXISTS' });
    expect(await create('taken', { versioning: 'true' })).toMatchObject({ code: 'ALREADY_EXISTS' });
    expect((await appliance.operations("resource_name = 'taken'")).map(({ state }) => state)).toEqual([
      'failed',
      'failed',
    ]);
    expect(appliance.fake!.bucket('taken')).toMatchObject({ owner: 'foreign', objects: 1, incarnation: null });
    appliance.fake!.dropBucket('taken');
    expect(await create('taken', { quotaMaxObjects: '5' })).toMatchObject({ code: 'OK' });
    // Never ours, never deleted: only what the last call made goes.
    expect(await remove('taken')).toMatchObject({ code: 'OK' });
    expect(appliance.fake!.bucket('taken')).toBeUndefined();
  });

  it('never adopts an untagged, empty bucket of our own user that this call did not see absent', async () => {
    await create('bare');
    appliance.fake!.seedObjects('bare', 1);
    appliance.fake!.dropTags('bare');
    // With something in it, it may be anybody's: let go of, not deleted.
    expect(await remove('bare')).toMatchObject({ code: 'OK' });
    appliance.fake!.seedObjects('bare', 0);
    expect(await create('bare')).toMatchObject({ code: 'ALREADY_EXISTS' });
    expect(await remove('bare')).toMatchObject({ code: 'OK' });
    expect(appliance.fake!.bucket('bare')).toMatchObject({ incarnation: null, configured: 1 });
  });

  it('gives a name that was deleted to a new incarnation, with other parameters if asked', async () => {
    await create('phoenix');
    const before = appliance.fake!.bucket('phoenix')!.incarnation;
    expect(await remove('phoenix')).toMatchObject({ code: 'OK' });
    expect(await remove('phoenix')).toMatchObject({ code: 'OK' });
    expect(await create('phoenix', { versioning: 'true' })).toMatchObject({ code: 'OK' });
    expect(appliance.fake!.bucket('phoenix')!.incarnation).not.toBe(before);
    expect(await count('phoenix')).toBe(3);
  });

  it('heals a grant whose bucket was deleted and made again, with the same account and key', async () => {
    await create('lost');
    const first = await grant('ba-lost', 'lost');
    expect(await remove('lost')).toMatchObject({ code: 'OK' });
    expect(await grant('ba-lost', 'lost')).toMatchObject({ code: 'NOT_FOUND' });
    await create('lost');
    expect(appliance.fake!.grants('lost')).toEqual([]);
    const healed = await grant('ba-lost', 'lost');
    expect(healed).toMatchObject({ code: 'OK', reply: first.reply });
    expect(appliance.fake!.grants('lost')).toEqual([{ uid: first.reply.account_id, mode: 'read_write' }]);
    const operations = await count('ba-lost');
    expect(await grant('ba-lost', 'lost')).toMatchObject({ code: 'OK', reply: first.reply });
    expect(await count('ba-lost')).toBe(operations);
  });
});

describe('several buckets', () => {
  it('grants all or nothing: an unknown one, and one whose policy cannot be written', async () => {
    await create('many-1');
    await create('many-2');
    expect(await grantMany('ba-none', ['many-1', 'unknown', 'many-2'])).toMatchObject({ code: 'NOT_FOUND' });
    expect(await count('ba-none')).toBe(0);
    const fault = {
      method: 'putGrants',
      resource: 'many-2',
      mode: 'fail-before',
      error: 'resource_exhausted',
    } as const;
    appliance.fake!.addFault(fault);
    expect(await grantMany('ba-undone', ['many-1', 'many-2'])).toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
    for (const bucket of ['many-1', 'many-2']) expect(appliance.fake!.grants(bucket)).toEqual([]);
    const uid = appliance.fake!.calls({ method: 'putPrincipal' }).at(-1)!.resource;
    expect(appliance.fake!.principals().map(principal => principal.uid)).not.toContain(uid);
    const again = await grantMany('ba-undone', ['many-1', 'many-2']);
    expect(again).toMatchObject({ code: 'OK' });
    expect(again.reply.account_id).not.toBe(uid);
  });

  it('compares sets, not lists', async () => {
    const replies = [await grantMany('ba-set', ['many-1', 'many-2']), await grantMany('ba-set', ['many-2', 'many-1'])];
    for (const { code, reply } of replies)
      expect([code, reply.account_id]).toEqual(['OK', replies[0]!.reply.account_id]);
    expect(await count('ba-set')).toBe(1);
  });

  it('keeps a Deny where a principal has lost one of its buckets, until it is revoked as a whole', async () => {
    await create('part-1');
    await create('part-2');
    await create('part-3');
    const { reply } = await grantMany('ba-part', ['part-1', 'part-2', 'part-3']);
    const uid = reply.account_id;
    // Two at once: neither may forget the other.
    const narrowed = await Promise.all([revokeMany(uid, ['part-1']), revokeMany(uid, ['part-2'])]);
    expect(narrowed.map(({ code }) => code)).toEqual(['OK', 'OK']);
    expect(appliance.fake!.grants('part-1')).toEqual([{ uid, mode: 'revoked' }]);
    expect(appliance.fake!.grants('part-2')).toEqual([{ uid, mode: 'revoked' }]);
    expect(appliance.fake!.grants('part-3')).toEqual([{ uid, mode: 'read_write' }]);
    expect(appliance.fake!.keys(uid)).toHaveLength(1);
    // The request that it now is, and the one that it was.
    expect(await grantMany('ba-part', ['part-3'])).toMatchObject({ code: 'OK', reply: { account_id: uid } });
    expect(await grantMany('ba-part', ['part-1', 'part-2', 'part-3'])).toMatchObject({ code: 'ALREADY_EXISTS' });
    expect(await revokeMany(uid, ['part-1'])).toMatchObject({ code: 'OK' });
    expect(appliance.fake!.grants('part-3')).toHaveLength(1);
    expect(await revokeMany(uid, ['part-3'])).toMatchObject({ code: 'OK' });
    for (const bucket of ['part-1', 'part-2', 'part-3']) expect(appliance.fake!.grants(bucket)).toEqual([]);
    expect(appliance.fake!.principals().map(principal => principal.uid)).not.toContain(uid);
  });
});

/** As `trivet bucket import` does. */
async function register(name: string): Promise<string> {
  const database = await Database.connect({ appUrl: appliance.database.appUrl, applicationName: 'trivet:test' });
  const registry = new BackendRegistry(objectBackendKinds(), await readApplianceId(database));
  const backends = new BackendDirectory(database, registry, appliance.secrets);
  const [place] = await appliance.database.query<BackendPlace>(
    'SELECT tenant_id AS "tenantId", id AS "backendId" FROM trivet.backend',
  );
  try {
    const kind = fakeKind as ObjectBackendKind;
    return (await registerBucket(database, backends, kind, place!, name)).outcome;
  } finally {
    backends.close();
    await database.close();
  }
}

describe('a registered bucket', () => {
  it('can be granted and let go of, and is never made, changed or deleted', async () => {
    appliance.fake!.seedForeignBucket('brown', 7);
    const before = appliance.fake!.bucket('brown');
    expect(await grant('ba-brown', 'brown')).toMatchObject({ code: 'NOT_FOUND' });
    expect(await register('brown')).toBe('registered');
    expect(await register('brown')).toBe('known');
    appliance.fake!.clearCalls();
    expect(await create('brown')).toMatchObject({ code: 'ALREADY_EXISTS' });
    const granted = await grant('ba-brown', 'brown');
    expect(granted).toMatchObject({ code: 'OK' });
    const uid = granted.reply.account_id;
    expect(appliance.fake!.grants('brown')).toEqual([{ uid, mode: 'read_write' }]);
    const existing = await client.call('r1', 'DriverGetExistingBucket', { existing_bucket_id: 'brown' });
    expect(existing).toMatchObject({ code: 'OK', reply: { bucket_id: 'brown' } });
    expect(await remove('brown')).toMatchObject({ code: 'OK' });
    expect(appliance.fake!.grants('brown')).toEqual([]);
    expect(await revoke(uid, 'brown')).toMatchObject({ code: 'OK' });
    expect(appliance.fake!.bucket('brown')).toEqual(before);
    const touched = new Set(appliance.fake!.calls({ resource: 'brown' }).map(({ method }) => method));
    expect([...touched]).toEqual(['putGrants']);
    const letGo = /"bucket":"brown","msg":"a registered bucket is let go/;
    await until('it is in the log', () => letGo.test(appliance.process('worker').log()));
  });

  it('is not another one that was given its name', async () => {
    const fake = appliance.fake!;
    fake.seedForeignBucket('lent');
    await register('lent');
    const first = await grant('ba-lent', 'lent');
    fake.dropBucket('lent');
    fake.seedForeignBucket('lent');
    fake.clearCalls();
    const stranger = {
      code: 'FAILED_PRECONDITION',
      message: expect.stringContaining('not the one that was registered'),
    };
    expect(await grant('ba-lent-2', 'lent')).toMatchObject(stranger);
    await expect(register('lent')).rejects.toMatchObject({ kind: 'failed_precondition' });
    // What was granted on the one that is gone can be taken back, and the registration ended.
    expect(await revoke(first.reply.account_id, 'lent')).toMatchObject({ code: 'OK' });
    expect(await remove('lent')).toMatchObject({ code: 'OK' });
    expect(fake.calls({ resource: 'lent' }).filter(({ phase }) => phase === 'effect')).toEqual([]);
    expect(fake.principals().map(({ uid }) => uid)).not.toContain(first.reply.account_id);
    const operations = await appliance.operations();
    expect(operations.filter(({ state }) => state === 'needs_attention')).toEqual([]);
  });

  it('takes the identity of the one that is there when it was registered without', async () => {
    appliance.fake!.seedForeignBucket('older');
    await register('older');
    const identity = async () =>
      (await appliance.database.query("SELECT identity FROM trivet.bucket WHERE name = 'older'"))[0]?.identity;
    const { identity: known } = appliance.fake!.bucket('older')!;
    expect(await identity()).toBe(known);
    await appliance.database.query("UPDATE trivet.bucket SET identity = NULL WHERE name = 'older'");
    expect(await grant('ba-older', 'older')).toMatchObject({ code: 'OK' });
    expect(await register('older')).toBe('known');
    expect(await identity()).toBe(known);
  });

  it('is one that exists, and that we did not make', async () => {
    for (const name of ['', '-brown', 'other/brown', 'other:brown', 'other$brown', '../brown', 'b'.repeat(256)])
      await expect(register(name), name).rejects.toMatchObject({ kind: 'invalid_argument', field: 'name' });
    await expect(register('nowhere')).rejects.toMatchObject({ kind: 'not_found' });
    await create('green');
    await expect(register('green')).rejects.toMatchObject({
      kind: 'already_exists',
      message: expect.stringContaining('needs no registration'),
    });
    const [row] = await appliance.database.query("SELECT origin FROM trivet.bucket WHERE name = 'green'");
    expect(row).toEqual({ origin: 'created' });
  });
});

/** Last: it stops what the others need. */
describe('the fast path', () => {
  it('answers repeats and the same secret with no worker, no Redis, no operation and no backend call', async () => {
    await create('fast');
    const granted = await grant('ba-fast', 'fast');
    expect(granted.code).toBe('OK');
    await appliance.settled();
    await Promise.all(appliance.processes.map(process => process.stop()));
    // Nothing listens there: this gateway never had a Redis.
    await appliance.gateway({ TRIVET_REDIS_URL: 'redis://127.0.0.1:1' });
    client = appliance.client();
    const operations = (await appliance.operations()).length;
    appliance.fake!.clearCalls();
    for (let n = 0; n < 5; n++) {
      expect(await create('fast')).toMatchObject({ code: 'OK' });
      expect(await grant('ba-fast', 'fast')).toMatchObject({ code: 'OK', reply: granted.reply });
      expect(await remove('never-there')).toMatchObject({ code: 'OK' });
      expect(await revoke(`trivet-${randomUUID()}`, 'fast')).toMatchObject({ code: 'OK' });
    }
    expect((await appliance.operations()).length).toBe(operations);
    expect(appliance.fake!.calls()).toEqual([]);
  });
});
