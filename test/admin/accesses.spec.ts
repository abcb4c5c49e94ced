import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EndpointCaller } from '#storage/object/endpoint';
import { AdminHouse } from '#test/admin/admin-house';
import { ended, grantOn, operationOf, readsAllOfMoving, sidecarOf, unworked } from '#test/admin/resource-calls';
import { until } from '#test/support/parts';

let house: AdminHouse;
let sidecar: EndpointCaller;
const accesses = '/tenants/acme/accesses';

beforeAll(async () => {
  house = await AdminHouse.create();
  await house.appliance.worker();
  sidecar = await sidecarOf(house, house.acme);
  for (const name of ['one', 'two'])
    await house.parts.storage.buckets.create(sidecar, { name, protocols: ['s3'], parameters: {} });
}, 60_000);
afterAll(() => house?.close());

const grant = (name: string, buckets: readonly string[] = ['one']) =>
  grantOn(house.parts.storage, sidecar, name, ...buckets);
const list = async (query: Record<string, string> = {}) =>
  (await house.call(house.acme.viewer, 'GET', accesses, { query })).body.items;

describe('an access by the admin API', () => {
  it('that could not be put right, and was given up, loses all the same what a revocation names', async () => {
    const fake = house.appliance.fake!;
    const both = ['given-1', 'given-2'];
    for (const name of both)
      await house.parts.storage.buckets.create(sidecar, { name, protocols: ['s3'], parameters: {} });
    const {
      value: { accountId },
    } = await grant('given-up', both);
    // As after a release of the first one.
    await house.query(
      "DELETE FROM trivet.bucket_grant WHERE bucket_id = (SELECT id FROM trivet.bucket WHERE name = 'given-1')",
    );
    await house.query("UPDATE trivet.access SET stale = true WHERE name = 'given-up'");
    fake.addFault({ method: 'putGrants', resource: 'given-2', mode: 'fail-before', error: 'failed_precondition' });
    await expect(grant('given-up', both)).rejects.toMatchObject({ kind: 'failed_precondition' });
    const [parked] = await house.query<{ id: string }>(
      "SELECT id FROM trivet.operation WHERE kind = 'access.grant' AND state = 'needs_attention'",
    );
    expect(fake.grants('given-1')).toEqual([{ uid: accountId, mode: 'read_write' }]);
    const reason = { body: { reason: 'a test wants it' } };
    expect((await house.call(house.acme.admin, 'POST', `/operations/${parked!.id}/resolve`, reason)).status).toBe(200);
    await house.parts.storage.accesses.revoke(sidecar, accountId, ['given-1']);
    expect(fake.grants('given-1')).toEqual([{ uid: accountId, mode: 'revoked' }]);
  });

  it('is shown with what it may reach, and never with its key', async () => {
    const {
      value: { accountId, credentials },
    } = await grant('shown', ['one', 'two']);
    const [found] = await list({ search: 'shown' });
    expect(found).toMatchObject({
      name: 'shown',
      accountId,
      backend: 'fake',
      state: 'ready',
      stale: false,
      grants: [
        { bucket: 'one', mode: 'read_write', state: 'applied' },
        { bucket: 'two', mode: 'read_write', state: 'applied' },
      ],
    });
    const { body, headers } = await house.call(house.acme.viewer, 'GET', `${accesses}/${found.id}`);
    expect(body).toEqual(found);
    expect(headers.etag).toEqual(expect.any(String));
    for (const secret of Object.values(credentials)) expect(JSON.stringify(body)).not.toContain(secret);
    const [bucket] = (await house.call(house.acme.viewer, 'GET', '/tenants/acme/buckets', { query: { search: 'two' } }))
      .body.items;
    expect(bucket.accesses).toBe(1);
    expect((await list({ bucket: bucket.id })).map(({ name }: { name: string }) => name)).toEqual(['shown']);
    expect((await house.call(house.beta.admin, 'GET', `/tenants/beta/accesses/${found.id}`)).status).toBe(404);
  });

  it('of a service account says whose, and until when another one lasts', async () => {
    const { value } = await grant('keyless');
    await grant('ending');
    const account = { namespace: 'shop', name: 'uploader' };
    await house.query(
      `UPDATE trivet.access SET desired = desired || jsonb_build_object('authentication', 'service_account', 'serviceAccount', $1::jsonb)
        WHERE name = 'keyless'`,
      [JSON.stringify(account)],
    );
    await house.query(`UPDATE trivet.access SET expires_at = '2030-01-02T03:04:05Z' WHERE name = 'ending'`);
    const [keyless] = await list({ authentication: 'service_account' });
    // This kind has no other name for it.
    expect(keyless).toMatchObject({ name: 'keyless', serviceAccount: { ...account, as: value.accountId } });
    expect(keyless.expiresAt).toBeNull();
    const [ending] = await list({ authentication: 'key', search: 'ending' });
    expect(ending).toMatchObject({ serviceAccount: null, expiresAt: '2030-01-02T03:04:05.000Z' });
    expect(await list({ authentication: 'key', search: 'keyless' })).toEqual([]);
    const body = { reason: 'a test', graceSeconds: 0 };
    const refused = await house.call(house.acme.admin, 'POST', `${accesses}/${keyless.id}/rotate`, { body });
    expect(refused).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
    expect(refused.body.detail).toContain('is of a service account, which has no key');
  });

  describe('is issued', () => {
    let bucket: string;
    const issue = (body: object, who = house.acme.admin, headers: Record<string, string> = {}) =>
      house.call(who, 'POST', accesses, { body, headers });
    const reveal = (id: string, who = house.acme.admin) =>
      house.call(who, 'POST', `${accesses}/${id}/key`, { body: { reason: 'a test wants it' } });
    beforeAll(async () => {
      const named = await house.call(house.acme.viewer, 'GET', '/tenants/acme/buckets', { query: { search: 'one' } });
      bucket = named.body.items[0].id;
    });

    it('to a person with all that a client needs, and shown to administrators again', async () => {
      const made = await issue({ name: 'report', buckets: [{ bucket, mode: 'read_only' }] });
      expect(made).toMatchObject({
        status: 201,
        body: {
          name: 'report',
          state: 'ready',
          issued: true,
          grants: [{ bucket: 'one', mode: 'read_only', state: 'applied' }],
          key: { protocol: 's3', accessKeyId: expect.any(String), endpoint: expect.any(String), token: null },
        },
      });
      expect(house.appliance.fake!.grants('one')).toContainEqual({ uid: made.body.accountId, mode: 'read_only' });
      const { id, key } = made.body;
      expect(await reveal(id)).toMatchObject({ status: 200, body: key });
      expect(await reveal(id, house.acme.operator)).toMatchObject({ status: 403 });
      const entries = [...(await house.audit('access.issue')), ...(await house.audit('access.reveal'))];
      expect(entries).toMatchObject([
        { subject_id: id, subject_name: 'report' },
        { subject_id: id, reason: 'a test wants it', actor: house.acme.admin.username },
      ]);
      const shown = [entries, await list(), await house.query('SELECT * FROM trivet.operation')];
      expect(JSON.stringify(shown)).not.toContain(key.secretAccessKey);

      // Another key is shown by the same call.
      const body = { reason: 'old', graceSeconds: 0 };
      const rotated = await house.call(house.acme.admin, 'POST', `${accesses}/${id}/rotate`, { body });
      expect(rotated.status).toBe(200);
      const other = (await reveal(id)).body;
      expect(other.secretAccessKey).not.toBe(key.secretAccessKey);
      const gone = await house.call(house.acme.admin, 'POST', `${accesses}/${id}/revoke`, { body: { reason: 'done' } });
      expect(gone.status).toBe(204);
      expect(await reveal(id)).toMatchObject({ status: 404 });
    });

    it('under a name of its own: neither door tells what the other granted', async () => {
      await grant('of-a-driver');
      const [{ id }] = await list({ search: 'of-a-driver' });
      const body = { name: 'of-a-driver', buckets: [{ bucket, mode: 'read_write' }] };
      const refused = { status: 409, body: { code: 'already_exists', detail: expect.stringContaining('to a driver') } };
      expect(await issue(body)).toMatchObject(refused);
      expect(await reveal(id)).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });

      expect((await issue({ ...body, name: 'of-a-person' })).status).toBe(201);
      await expect(grant('of-a-person')).rejects.toMatchObject({ kind: 'already_exists', message: /by a person/ });
      const [person] = await list({ search: 'of-a-person' });
      await house.parts.storage.accesses.revoke(sidecar, person.accountId, ['another']);
      expect((await reveal(person.id)).status).toBe(200);
    });

    it('and stays as it is, whatever a driver revokes', async () => {
      const { id, accountId, key } = (await issue({ name: 'stays', buckets: [{ bucket, mode: 'read_only' }] })).body;
      for (const buckets of [undefined, ['one']])
        await house.parts.storage.accesses.revoke(sidecar, accountId, buckets);
      expect(house.appliance.fake!.grants('one')).toContainEqual({ uid: accountId, mode: 'read_only' });
      expect(await reveal(id)).toMatchObject({ status: 200, body: key });
    });

    const makeBucket = (name: string) =>
      house.parts.storage.buckets.create(sidecar, { name, protocols: ['s3'], parameters: {} });
    const bucketNamed = async (name: string) =>
      (await house.call(house.acme.viewer, 'GET', '/tenants/acme/buckets', { query: { search: name } })).body.items[0]
        .id;

    it('never with its old key for another bucket of the same name', async () => {
      const ask = async () =>
        issue({ name: 'of-anew', buckets: [{ bucket: await bucketNamed('anew'), mode: 'read_only' }] });
      await makeBucket('anew');
      const first = (await ask()).body;
      await house.parts.storage.buckets.delete(sidecar, 'anew');
      await makeBucket('anew');
      expect(await ask()).toMatchObject({ status: 409, body: { errors: [{ pointer: '/body/name' }] } });
      expect(house.appliance.fake!.grants('anew')).toEqual([]);
      const revoke = { body: { reason: 'another bucket' } };
      expect((await house.call(house.acme.admin, 'POST', `${accesses}/${first.id}/revoke`, revoke)).status).toBe(204);
      const second = await ask();
      expect(second.status).toBe(201);
      expect(second.body.key.accessKeyId).not.toBe(first.key.accessKeyId);
    });

    it('and shown by what was looked up, not by whatever has that name since', async () => {
      const calls = house.parts.storage.accesses;
      const place = sidecar.endpoint;
      const none = '0198c0de-0000-7000-8000-000000000000';
      await issue({ name: 'looked-up', buckets: [{ bucket, mode: 'read_only' }] });
      await expect(calls.reveal(place, { id: none, name: 'looked-up' })).rejects.toMatchObject({ kind: 'not_found' });
      const fields = { protocol: '', authentication: '', buckets: '', modes: '', rotation: '', expiry: '' };
      const buckets = [{ bucketId: 'one', id: none, mode: 'read_only' }] as const;
      await expect(
        calls.issue({ ...sidecar, place }, { name: 'late', protocol: 's3', buckets, fields }),
      ).rejects.toMatchObject({ kind: 'not_found' });
    });

    it('with each showing of its key told: none is repeated from what was kept', async () => {
      const { id } = (await issue({ name: 'told', buckets: [{ bucket, mode: 'read_only' }] })).body;
      const body = { reason: 'a test wants it' };
      const headers = { 'idempotency-key': 'shown-once' };
      const path = `${accesses}/${id}/key`;
      expect(await house.call(house.acme.admin, 'POST', path, { body, headers })).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/header/idempotency-key' }] },
      });
      expect(await house.query('SELECT FROM trivet.idempotency_key WHERE key = $1', ['shown-once'])).toEqual([]);
    });

    it('once, and its key is there when its operation has ended', async () => {
      const body = { name: 'slow', buckets: [{ bucket, mode: 'read_write' }] };
      const headers = { prefer: 'wait=0', 'idempotency-key': 'slow-access' };
      const [going, again] = await unworked(house, async () => [
        await issue(body, house.acme.admin, headers),
        await issue(body, house.acme.admin, headers),
      ]);
      expect(going).toMatchObject({ status: 202, body: { name: 'slow', state: 'granting', key: null } });
      expect(again).toMatchObject({ status: 202, body: going!.body });
      expect(await ended(house, operationOf(going!))).toBe('succeeded');
      expect(await reveal(going!.body.id)).toMatchObject({ status: 200 });
      expect(await issue(body)).toMatchObject({ status: 409, body: { code: 'already_exists' } });
    });

    it('only to what there is, with a mode each', async () => {
      const none = '0198c0de-0000-7000-8000-000000000000';
      expect(await issue({ name: 'x', buckets: [{ bucket: none, mode: 'read_only' }] })).toMatchObject({
        status: 404,
        body: { errors: [{ pointer: '/body/buckets/0/bucket' }] },
      });
      const twice = ['read_only', 'read_write'].map(mode => ({ bucket, mode }));
      expect(await issue({ name: 'x', buckets: twice })).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/body/buckets' }] },
      });
      const rotation = { afterSeconds: 7_200, graceSeconds: 7_200 };
      expect(await issue({ name: 'x', buckets: [{ bucket, mode: 'read_only' }], rotation })).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/body/rotation/graceSeconds' }] },
      });
      expect(await issue({ name: 'x', buckets: [{ bucket, mode: 'read_only' }] }, house.acme.operator)).toMatchObject({
        status: 403,
      });
      expect(await list({ search: 'x' })).toEqual([]);
    });
  });

  it('is revoked with a reason, by an admin alone', async () => {
    await grant('leaked');
    const [{ id }] = await list({ search: 'leaked' });
    const path = `${accesses}/${id}/revoke`;
    const body = { reason: 'the key leaked' };
    expect((await house.call(house.acme.operator, 'POST', path, { body })).status).toBe(403);
    expect((await house.call(house.acme.admin, 'POST', path, { body: {} })).status).toBe(400);
    const headers = { prefer: 'wait=0' };
    const accepted = await unworked(house, () => house.call(house.acme.admin, 'POST', path, { body, headers }));
    expect(accepted.status).toBe(202);
    expect(await ended(house, operationOf(accepted))).toBe('succeeded');
    expect(await list({ search: 'leaked' })).toEqual([]);
    expect((await house.call(house.acme.admin, 'POST', path, { body })).status).toBe(404);
    const [entry] = await house.audit('access.revoke');
    expect(entry).toMatchObject({
      subject_id: id,
      reason: 'the key leaked',
      operation_id: operationOf(accepted),
      before: expect.objectContaining({ name: 'leaked', state: 'ready' }),
    });
  });

  it('is done at once when that is waited for', async () => {
    await grant('waited');
    const [{ id }] = await list({ search: 'waited' });
    const revoked = await house.call(house.acme.admin, 'POST', `${accesses}/${id}/revoke`, {
      body: { reason: 'over' },
    });
    expect(revoked.status).toBe(204);
  });

  describe('whose key is changed', () => {
    const rotate = (id: string, body: object) =>
      house.call(house.acme.admin, 'POST', `${accesses}/${id}/rotate`, { body: { reason: 'somebody left', ...body } });
    const given = async (name: string) => {
      const { value } = await grant(name);
      const [{ id }] = await list({ search: name });
      return { id, ...value };
    };
    const keysAt = (accountId: string) =>
      house.appliance
        .fake!.keys(accountId)
        .map(({ accessKeyId }) => accessKeyId)
        .sort();
    const show = async (id: string) => (await house.call(house.acme.viewer, 'GET', `${accesses}/${id}`)).body;

    it('has both at the store until the grace is over, and Grant answers the new one', async () => {
      const { id, accountId, credentials } = await given('changed');
      const { status, body } = await rotate(id, { graceSeconds: 3_600 });
      expect(status).toBe(200);
      const left = Date.parse(body.formerKeyUntil) - Date.now();
      expect(left).toBeGreaterThan(3_500_000);
      expect(left).toBeLessThan(3_700_000);
      expect(JSON.stringify(body)).not.toContain(credentials.secretAccessKey);
      const { value: next } = await grant('changed');
      expect(next.accountId).toBe(accountId);
      expect(next.credentials.accessKeyId).not.toBe(credentials.accessKeyId);
      expect(next.credentials.secretAccessKey).not.toBe(credentials.secretAccessKey);
      expect(keysAt(accountId)).toEqual([credentials.accessKeyId, next.credentials.accessKeyId].sort());
      const [entry] = await house.audit('access.rotate');
      expect(entry).toMatchObject({
        subject_id: id,
        reason: 'somebody left',
        after: { graceSeconds: 3_600 },
      });
      await house.query('UPDATE trivet.access SET former_until = now() WHERE id = $1', [id]);
      await until('the former has ended', async () => (await show(id)).formerKeyUntil === null);
      expect(keysAt(accountId)).toEqual([next.credentials.accessKeyId]);
      expect((await grant('changed')).value.credentials).toEqual(next.credentials);
    });

    it('is refused a third key, save without grace, which ends both that it had', async () => {
      const { id, accountId } = await given('twice');
      await rotate(id, { graceSeconds: 3_600 });
      const refused = await rotate(id, { graceSeconds: 60 });
      expect(refused.status).toBe(409);
      expect(refused.body.detail).toContain('has a former key that is let in until');
      expect((await rotate(id, { graceSeconds: 0 })).status).toBe(200);
      await until('both have ended', async () => keysAt(accountId).length === 1);
      expect(keysAt(accountId)).toEqual([(await grant('twice')).value.credentials.accessKeyId]);
    });

    it('is not changed by what only ends the former one', async () => {
      const { id, accountId } = await given('retiring');
      await rotate(id, { graceSeconds: 3_600 });
      const fake = house.appliance.fake!;
      const method = 'putPrincipal';
      fake.addFault({ method, resource: accountId, mode: 'fail-before', error: 'unavailable', count: 1_000 });
      await house.query('UPDATE trivet.access SET former_until = now() WHERE id = $1', [id]);
      await until('the former is being ended', async () => (await show(id)).operation !== null);
      const before = (await grant('retiring')).value.credentials;
      for (const graceSeconds of [0, 3_600]) {
        const refused = await rotate(id, { graceSeconds });
        expect(refused).toMatchObject({ status: 409, body: { code: 'aborted' } });
        expect(refused.body.detail).toContain('the former key of account');
      }
      fake.clearFaults();
      await until('that is over', async () => (await show(id)).operation === null);
      expect((await rotate(id, { graceSeconds: 0 })).status).toBe(200);
      const after = (await grant('retiring')).value.credentials;
      expect(after.accessKeyId).not.toBe(before.accessKeyId);
      await until('one is left', async () => keysAt(accountId).length === 1);
      expect(keysAt(accountId)).toEqual([after.accessKeyId]);
    });

    it('says of a change that waits for an operator that it does, and is not told to come again', async () => {
      const { id, accountId } = await given('parked');
      await rotate(id, { graceSeconds: 3_600 });
      const fake = house.appliance.fake!;
      fake.addFault({
        method: 'putPrincipal',
        resource: accountId,
        mode: 'fail-before',
        error: 'already_exists',
        count: 1_000,
      });
      await house.query('UPDATE trivet.access SET former_until = now() WHERE id = $1', [id]);
      const parked = () =>
        house.query<{ id: string }>(
          "SELECT id FROM trivet.operation WHERE resource_id = $1 AND state = 'needs_attention'",
          [id],
        );
      await until('it waits', async () => (await parked()).length === 1);
      const [operation] = await parked();
      const refused = await rotate(id, { graceSeconds: 0 });
      expect(refused).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
      expect(refused.body.detail).toContain(`operation ${operation!.id}, which waits for an operator`);
      fake.clearFaults();
      const reason = { body: { reason: 'mended' } };
      const retried = await house.call(house.acme.admin, 'POST', `/operations/${operation!.id}/retry`, reason);
      expect(retried.status).toBe(200);
      await until('that is over', async () => (await show(id)).operation === null);
      expect((await rotate(id, { graceSeconds: 0 })).status).toBe(200);
    });

    it('keeps both when it is healed meanwhile, and loses both when it is revoked', async () => {
      const { id, accountId } = await given('healed');
      await rotate(id, {});
      const both = keysAt(accountId);
      expect(both).toHaveLength(2);
      house.appliance.fake!.dropKeys(accountId);
      await house.query('UPDATE trivet.access SET stale = true WHERE id = $1', [id]);
      await grant('healed');
      expect(keysAt(accountId)).toEqual(both);
      await house.call(house.acme.admin, 'POST', `${accesses}/${id}/revoke`, { body: { reason: 'over' } });
      expect(keysAt(accountId)).toEqual([]);
      const left = "SELECT FROM trivet.secret WHERE owner_table = 'access' AND owner_id = $1";
      expect(await house.query(left, [id])).toEqual([]);
    });

    it('is joined by who asks again, and revoked in the middle of it', async () => {
      const { id, accountId } = await given('middle');
      const fake = house.appliance.fake!;
      fake.addFault({
        method: 'putPrincipal',
        resource: accountId,
        mode: 'fail-before',
        error: 'unavailable',
        count: 1_000,
      });
      const prefer = { headers: { prefer: 'wait=1' } };
      const ask = () =>
        house.call(house.acme.admin, 'POST', `${accesses}/${id}/rotate`, { body: { reason: 'a test' }, ...prefer });
      const [first, second] = [await ask(), await ask()];
      expect([first.status, second.status]).toEqual([202, 202]);
      expect(operationOf(second)).toBe(operationOf(first));
      expect((await show(id)).operation).toBe(operationOf(first));
      const otherwise = await rotate(id, { graceSeconds: 0 });
      expect(otherwise).toMatchObject({ status: 409, body: { code: 'aborted' } });
      expect(otherwise.body.detail).toContain(`with a grace of 86400 seconds by operation ${operationOf(first)}`);
      // Grant does not wait for it.
      expect((await grant('middle')).value.accountId).toBe(accountId);
      fake.clearFaults();
      const revoked = await house.call(house.acme.admin, 'POST', `${accesses}/${id}/revoke`, {
        body: { reason: 'over' },
      });
      expect([202, 204]).toContain(revoked.status);
      await until(
        'it is gone',
        async () => keysAt(accountId).length === 0 && (await list({ search: 'middle' })).length === 0,
      );
    });
  });

  it('is listed once over all pages while others come', async () => {
    const many = await house.tenant('many');
    const { missed, twice } = await readsAllOfMoving(house, many, 'accesses', {}, async ({ from, to, step }) => {
      await house.query(
        `INSERT INTO trivet.access (tenant_id, id, backend_id, name, account_id, state, desired, fingerprint)
         SELECT $1, gen_random_uuid(), $2, 'page-' || lpad(n::text, 5, '0'), 'account-' || n, 'granting', '{}', 'x'
           FROM generate_series($3::int, $4::int, $5::int) AS n`,
        [many.id, many.backends.fake, from, to, step],
      );
    });
    expect({ missed, twice }).toEqual({ missed: [], twice: 0 });
  });
});
