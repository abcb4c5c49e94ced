/** COSI on Azure Blob, from the socket to what a signature lets its holder do at the service. */
import { ContainerClient } from '@azure/storage-blob';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CosiClient, type Dialect, type Reply } from '#test/cosi/client';
import { accessedBucket } from '#test/cosi/conformance/context';
import { type AzureHarness, azureParts, openAzureHarness } from '#test/object-backend/azure-harness';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const parts = azureParts();
const DIALECTS = ['v1alpha1', 'r1', 'r4'] as const;
type Mode = 'READ_WRITE' | 'READ_ONLY' | 'WRITE_ONLY';
const PARAMETERS = { READ_WRITE: 'ReadWrite', READ_ONLY: 'ReadOnly', WRITE_ONLY: 'WriteOnly' } as const;

const PROBES: Readonly<Record<string, (container: ContainerClient) => Promise<unknown>>> = {
  put: container => container.getBlockBlobClient('put').upload('x', 1),
  overwrite: container => container.getBlockBlobClient('theirs').upload('y', 1),
  'upload in two blocks': async container => {
    const blob = container.getBlockBlobClient('blocks');
    const ids = ['AAAA', 'BBBB'];
    for (const id of ids) await blob.stageBlock(id, 'x', 1);
    return blob.commitBlockList(ids);
  },
  get: container => container.getBlockBlobClient('theirs').download(),
  head: container => container.getBlockBlobClient('theirs').getProperties(),
  list: container => container.listBlobsFlat().next(),
  delete: container => container.getBlockBlobClient('spare').delete(),
  'read the policies': container => container.getAccessPolicy(),
  'write the policies': container => container.setAccessPolicy(),
  'write the metadata': container => container.setMetadata({}),
  'delete the container': container => container.delete(),
};
const WRITE = ['put', 'overwrite', 'upload in two blocks'];
const READ = ['get', 'head', 'list'];
const ALLOWED: Readonly<Record<Mode, readonly string[]>> = {
  READ_WRITE: [...WRITE, ...READ, 'delete'],
  READ_ONLY: READ,
  WRITE_ONLY: WRITE,
};

describe.skipIf(!parts)('COSI on Azure Blob', () => {
  let store: AzureHarness;
  let appliance: TestAppliance;
  let client: CosiClient;
  let count = 0;
  const tokens: string[] = [];

  beforeAll(async () => {
    store = await openAzureHarness(parts!);
    appliance = await TestAppliance.start({ backend: 'azure' });
    client = appliance.client();
  });
  afterAll(async () => {
    await appliance?.close();
    await store?.close();
  });

  const newName = () => `${store.prefix}e${++count}`;
  /** As sidecars repeat what is busy. */
  async function settle(dialect: Dialect, method: string, request: object): Promise<Reply> {
    const outcome = await until(`${method} is answered`, async () => {
      const one = await client.call(dialect, method, request);
      return ['ABORTED', 'UNAVAILABLE'].includes(one.code) ? undefined : one;
    });
    expect(outcome, outcome.message).toMatchObject({ code: 'OK' });
    return outcome.reply;
  }
  async function make(parameters: Record<string, string> = {}): Promise<string> {
    const name = newName();
    await settle('r1', 'DriverCreateBucket', { name, protocols: [{ type: 'AZURE' }], parameters });
    return name;
  }
  const wish = (
    dialect: Dialect,
    name: string,
    buckets: readonly string[],
    mode: Mode,
    parameters: Record<string, string> = {},
  ): object =>
    dialect === 'v1alpha1'
      ? {
          bucket_id: buckets[0],
          name,
          authentication_type: 'Key',
          parameters: { accessMode: PARAMETERS[mode], ...parameters },
        }
      : {
          account_name: name,
          protocol: { type: 'AZURE' },
          authentication_type: { type: 'KEY' },
          parameters,
          buckets: buckets.map(bucket => accessedBucket(dialect, bucket, mode)),
        };
  const tokenOf = (reply: Reply): string => {
    const token = reply.credentials.azure.secrets?.accessToken ?? reply.credentials.azure.access_token;
    tokens.push(token);
    return token;
  };
  const grant = async (
    name: string,
    bucket: string,
    mode: Mode = 'READ_WRITE',
    dialect: Dialect = 'r1',
    parameters: Record<string, string> = {},
  ) => settle(dialect, 'DriverGrantBucketAccess', wish(dialect, name, [bucket], mode, parameters));
  const revoke = (account_id: string, bucket: string) =>
    settle('r1', 'DriverRevokeBucketAccess', {
      account_id,
      protocol: { type: 'AZURE' },
      authentication_type: { type: 'KEY' },
      buckets: [{ bucket_id: bucket }],
    });
  const refused = (probe: Promise<unknown>) => expect(probe).rejects.toMatchObject({ statusCode: 403 });

  it('says that it speaks Azure', async () => {
    const { reply } = await client.call('r1', 'DriverGetInfo', {});
    expect(reply.supported_protocols).toEqual([{ type: 'AZURE' }]);
  });

  it.each(DIALECTS)('%s: gives a container and a signature, the same on every repeat', async dialect => {
    const bucket = newName();
    const request = dialect === 'r4' ? { bucket_id: bucket } : { name: bucket };
    const protocols = dialect === 'v1alpha1' ? {} : { protocols: [{ type: 'AZURE' }] };
    const made = await settle(dialect, 'DriverCreateBucket', { ...request, ...protocols });
    const storage = { storage_account: parts!.account };
    if (dialect === 'v1alpha1') expect(made.bucket_info.azureBlob).toEqual(storage);
    else expect(made.protocols).toEqual({ azure: storage });
    const access = `ba-${bucket}`;
    const first = await grant(access, bucket, 'READ_WRITE', dialect);
    const token = tokenOf(first);
    expect(token.startsWith(`${parts!.endpoint}/${bucket}?`)).toBe(true);
    if (dialect === 'v1alpha1')
      expect(first.credentials).toEqual({
        azure: { secrets: { accessToken: token, expiryTs: '9999-12-31 00:00:00 +0000 UTC' } },
      });
    else expect(first.buckets).toEqual([{ bucket_id: bucket, bucket_info: { azure: storage } }]);
    expect(Object.keys(first.credentials)).toEqual(['azure']);
    expect(await grant(access, bucket, 'READ_WRITE', dialect)).toEqual(first);
  });

  it.each(Object.keys(ALLOWED) as Mode[])('%s allows what it says, and nothing else', async mode => {
    const bucket = await make();
    const container = store.service.getContainerClient(bucket);
    for (const name of ['theirs', 'spare']) await container.getBlockBlobClient(name).upload('z', 1);
    const holder = store.holder(tokenOf(await grant(`ba-${bucket}`, bucket, mode)));
    for (const [name, probe] of Object.entries(PROBES)) {
      if (ALLOWED[mode].includes(name)) await expect(probe(holder), name).resolves.toBeDefined();
      else await refused(probe(holder));
    }
  });

  it('ends one access with its policy, and leaves the others', async () => {
    const bucket = await make();
    const [one, two] = [await grant(`ba-1-${bucket}`, bucket), await grant(`ba-2-${bucket}`, bucket)];
    const holders = [one, two].map(reply => store.holder(tokenOf(reply)));
    for (const holder of holders) await PROBES.put!(holder);
    await revoke(one.account_id, bucket);
    await refused(PROBES.put!(holders[0]!));
    await PROBES.put!(holders[1]!);
    expect(await store.grants(bucket)).toEqual([{ uid: two.account_id, mode: 'read_write' }]);
  });

  it('gives at most five accesses of one bucket, each at once with the others', async () => {
    const bucket = await make();
    const five = await Promise.all([1, 2, 3, 4, 5].map(n => grant(`ba-${n}-${bucket}`, bucket, 'READ_ONLY')));
    expect(new Set(five.map(tokenOf)).size).toBe(5);
    expect(await store.grants(bucket)).toHaveLength(5);
    const sixth = await client.call(
      'r1',
      'DriverGrantBucketAccess',
      wish('r1', `ba-6-${bucket}`, [bucket], 'READ_ONLY'),
    );
    expect(sixth.code).toBe('RESOURCE_EXHAUSTED');
    expect(sixth.message).toContain('6 stored access policies of 5');
    await revoke(five[0]!.account_id, bucket);
    await grant(`ba-6-${bucket}`, bucket, 'READ_ONLY');
  });

  describe('signatures that are changed, or end', () => {
    const set = (account: string, what: string) =>
      appliance.database.query(`UPDATE trivet.access SET ${what} WHERE account_id = $1`, [account]);
    const rowOf = async (account: string) =>
      (
        await appliance.database.query<{ busy: boolean; former: boolean; due: boolean; names: string[] | null }>(
          `SELECT key_operation IS NOT NULL AS busy, former_until IS NOT NULL AS former, signed_as AS names,
                  coalesce(rotate_at <= now(), false) AS due FROM trivet.access WHERE account_id = $1`,
          [account],
        )
      )[0]!;
    const changed = (account: string) =>
      until(
        'its signature is changed',
        async () => {
          const { busy, due } = await rowOf(account);
          return !busy && !due;
        },
        60_000,
      );
    const endOf = (reply: Reply): string => reply.credentials.azure.expiry_timestamp;
    const policiesOf = async (bucket: string) =>
      (await store.service.getContainerClient(bucket).getAccessPolicy()).signedIdentifiers;

    it('serves every request of a client that takes its signature from Grant while it is changed', async () => {
      const bucket = await make();
      const aged = { rotateAfter: '2h', rotateGrace: '1h' };
      const granting = () => grant(`ba-${bucket}`, bucket, 'READ_WRITE', 'r1', aged);
      const { account_id } = await granting();
      const failures: unknown[] = [];
      let [rounds, isOver] = [0, false];
      const using = (async () => {
        while (!isOver) {
          await PROBES.put!(store.holder(tokenOf(await granting()))).catch((error: unknown) => failures.push(error));
          rounds++;
        }
      })();
      const rounded = async () => {
        const from = rounds;
        await until('a client that began afterwards was served', () => rounds >= from + 2);
      };
      try {
        for (let change = 0; change < 3; change++) {
          await rounded();
          const before = tokenOf(await granting());
          await set(account_id, 'rotate_at = now()');
          await until('another signature is answered', async () => tokenOf(await granting()) !== before, 60_000);
          await PROBES.put!(store.holder(before));
          expect(await store.grants(bucket)).toHaveLength(2);
          await rounded();
          await set(account_id, 'former_until = now()');
          await until('the former has ended', async () => !(await rowOf(account_id)).former, 60_000);
          await refused(PROBES.put!(store.holder(before)));
        }
      } finally {
        isOver = true;
        await using;
      }
      expect(failures).toEqual([]);
      expect(rounds).toBeGreaterThan(6);
      await revoke(account_id, bucket);
      expect(await policiesOf(bucket)).toEqual([]);
    });

    it('changes none beside others that fill the container, and leaves the one that is there', async () => {
      const bucket = await make();
      const aged = { rotateAfter: '2h', rotateGrace: '1h' };
      const first = await grant(`ba-0-${bucket}`, bucket, 'READ_WRITE', 'r1', aged);
      await Promise.all([1, 2, 3, 4].map(n => grant(`ba-${n}-${bucket}`, bucket)));
      await set(first.account_id, 'rotate_at = now()');
      await changed(first.account_id);
      expect(await grant(`ba-0-${bucket}`, bucket, 'READ_WRITE', 'r1', aged)).toEqual(first);
      await PROBES.put!(store.holder(tokenOf(first)));
      const [{ state, error }] = (await appliance.database.query<{ state: string; error: { message: string } }>(
        "SELECT state, error FROM trivet.operation WHERE kind = 'access.rotate' AND resource_name = $1",
        [`ba-0-${bucket}`],
      )) as [{ state: string; error: { message: string } }];
      expect(state).toBe('failed');
      expect(error.message).toContain('6 stored access policies');
    });

    it('replaces one at once where there is no grace, also in a full container', async () => {
      const bucket = await make();
      const names = [0, 1, 2, 3, 4].map(n => `ba-${n}-${bucket}`);
      const replies = await Promise.all(names.map(name => grant(name, bucket)));
      const { account_id } = replies[0]!;
      const atOnce = '{"rotation": {"afterSeconds": 7200, "graceSeconds": 0}}';
      await set(account_id, `desired = desired || '${atOnce}', rotate_at = now()`);
      await changed(account_id);
      await until('the former is gone', async () => !(await rowOf(account_id)).former, 60_000);
      const next = await grant(names[0]!, bucket);
      expect(next.account_id).toBe(account_id);
      await refused(PROBES.put!(store.holder(tokenOf(replies[0]!))));
      await PROBES.put!(store.holder(tokenOf(next)));
      expect(await policiesOf(bucket)).toHaveLength(5);
      for (const other of replies.slice(1)) await PROBES.put!(store.holder(tokenOf(other)));
    });

    it('is not changed once it has ended, so that nobody is let in again before the next Grant', async () => {
      const bucket = await make();
      const granting = () =>
        grant(`ba-${bucket}`, bucket, 'READ_WRITE', 'r1', { expiresAfter: '2h', rotateAfter: '3h', rotateGrace: '1h' });
      const first = await granting();
      const [{ id, accessPolicy }] = (await policiesOf(bucket)) as [Awaited<ReturnType<typeof policiesOf>>[number]];
      const expiresOn = new Date(Date.now() - 1_000);
      const ended = [{ id, accessPolicy: { ...accessPolicy, expiresOn } }];
      await store.service.getContainerClient(bucket).setAccessPolicy(undefined, ended);
      await set(first.account_id, "expires_at = now() - interval '1 second', rotate_at = now()");
      await changed(first.account_id);
      const operations = await appliance.database.query(
        "SELECT FROM trivet.operation WHERE kind = 'access.rotate' AND resource_name = $1",
        [`ba-${bucket}`],
      );
      expect(operations).toHaveLength(0);
      expect((await policiesOf(bucket)).map(policy => policy.id)).toEqual([id]);
      await refused(PROBES.put!(store.holder(tokenOf(first))));
      // Its time, and by then the signature, are counted from now on.
      await set(first.account_id, 'renew_at = now()');
      await PROBES.put!(store.holder(tokenOf(await granting())));
    });

    it.each(['v1alpha1', 'r1'] as const)(
      '%s: ends by itself, and later where Grant is repeated in time',
      async dialect => {
        const bucket = await make();
        const ending = { expiresAfter: '2h' };
        const granting = () => grant(`ba-${bucket}`, bucket, 'READ_ONLY', dialect, ending);
        const told = (reply: Reply): number =>
          Date.parse(
            dialect === 'r1' ? endOf(reply) : reply.credentials.azure.secrets.expiryTs.replace(' +0000 UTC', 'Z'),
          );
        const written = async () => (await policiesOf(bucket))[0]!.accessPolicy.expiresOn!.getTime();
        const first = await granting();
        expect(Math.abs(told(first) - Date.now() - 7_200_000)).toBeLessThan(60_000);
        expect(await written()).toBe(told(first));
        expect(await granting()).toEqual(first);

        // As if an hour and a half had gone by.
        await set(
          first.account_id,
          "expires_at = expires_at - interval '90 minutes', renew_at = now() - interval '30 minutes'",
        );
        const later = await granting();
        expect(tokenOf(later)).toBe(tokenOf(first));
        expect(told(later)).toBeGreaterThanOrEqual(told(first));
        const [{ grants }] = (await appliance.database.query(
          "SELECT count(*)::int AS grants FROM trivet.operation WHERE kind = 'access.grant' AND resource_name = $1",
          [`ba-${bucket}`],
        )) as [{ grants: number }];
        expect(grants).toBe(2);
        expect(await written()).toBe(told(later));
        expect(await granting()).toEqual(later);
        await PROBES.list!(store.holder(tokenOf(later)));

        // Nobody asked in time.
        const container = store.service.getContainerClient(bucket);
        const [{ id, accessPolicy }] = (await policiesOf(bucket)) as [Awaited<ReturnType<typeof policiesOf>>[number]];
        await container.setAccessPolicy(undefined, [
          { id, accessPolicy: { ...accessPolicy, expiresOn: new Date(Date.now() - 1_000) } },
        ]);
        await refused(PROBES.list!(store.holder(tokenOf(later))));
        await set(first.account_id, 'renew_at = now()');
        await PROBES.list!(store.holder(tokenOf(await granting())));

        const other = wish(dialect, `ba-${bucket}`, [bucket], 'READ_ONLY', { expiresAfter: '3h' });
        expect(await client.call(dialect, 'DriverGrantBucketAccess', other)).toMatchObject({
          code: 'ALREADY_EXISTS',
          message: expect.stringContaining('parameters[expiresAfter]'),
        });
      },
    );
  });

  it('refuses several buckets for one access by OUT_OF_RANGE, and another protocol', async () => {
    const buckets = [await make(), await make()];
    const request = wish('r1', `ba-${buckets[0]}`, buckets, 'READ_WRITE');
    const both = await client.call('r1', 'DriverGrantBucketAccess', request);
    expect(both).toMatchObject({ code: 'OUT_OF_RANGE', message: expect.stringContaining('an access for each') });
    const s3 = { ...wish('r1', `ba-${buckets[0]}`, [buckets[0]!], 'READ_WRITE'), protocol: { type: 'S3' } };
    expect((await client.call('r1', 'DriverGrantBucketAccess', s3)).code).toBe('INVALID_ARGUMENT');
  });

  it('refuses names and parameters that a container cannot have', async () => {
    for (const name of ['two--dashes', 'a.dot', 'Upper', 'x'])
      expect((await client.call('r1', 'DriverCreateBucket', { name, protocols: [] })).code, name).toBe(
        'INVALID_ARGUMENT',
      );
    const versioned = { name: newName(), protocols: [], parameters: { versioning: 'true' } };
    const refusal = await client.call('r1', 'DriverCreateBucket', versioned);
    expect(refusal).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('versioning') });
  });

  it('leaves the container of somebody else alone', async () => {
    const name = newName();
    await store.seedForeignBucket(name);
    expect((await client.call('r1', 'DriverCreateBucket', { name, protocols: [] })).code).toBe('ALREADY_EXISTS');
    expect(await store.foreignBucketExists(name)).toBe(true);
  });

  it('keeps what is in a bucket, unless it was made to be purged', async () => {
    const [kept, purged] = [await make(), await make({ deletePolicy: 'purge', tags: 'team=blue' })];
    for (const name of [kept, purged]) await store.seedObjects(name, 3);
    expect((await store.bucketSpec(purged)).tags).toEqual({ team: 'blue' });
    const refusal = await client.call('r1', 'DriverDeleteBucket', { bucket_id: kept });
    expect(refusal.code).toBe('FAILED_PRECONDITION');
    await settle('r1', 'DriverDeleteBucket', { bucket_id: purged });
    expect(await store.foreignBucketExists(purged)).toBe(false);
    expect(await store.foreignBucketExists(kept)).toBe(true);
  });

  it('lets no signature and no account key into its logs', () => {
    const log = appliance.processes.map(process => process.log()).join('');
    expect(tokens.length).toBeGreaterThan(5);
    const secrets = [parts!.accountKey, ...tokens.map(token => new URL(token).searchParams.get('sig')!)];
    for (const secret of secrets)
      for (const spelled of [secret, encodeURIComponent(secret)]) expect(log.includes(spelled)).toBe(false);
    expect(log).not.toContain('sig=');
  });
});
