import { randomUUID } from 'node:crypto';
import { CreateMultipartUploadCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeObjectBackend } from '#backends/conformance/object-backend.conformance';
import { failsWith, none, plain } from '#backends/conformance/object-world';
import { Refusal } from '#test/fakes/gcs/gcs-project';
import { type GcsHarness, openGcsHarness, POOL } from '#test/object-backend/gcs-harness';

describeObjectBackend('gcs', () => openGcsHarness({ workloadIdentityPool: POOL }), {
  serviceAccounts: true,
  marksAtOnce: true,
  noQuotas: true,
  issuesKeys: true,
  rightsAtBuckets: true,
});

describe('a bucket of Google Cloud Storage', () => {
  let gcs: GcsHarness;
  beforeAll(async () => {
    gcs = await openGcsHarness();
  });
  afterAll(() => gcs?.close());

  const newRef = () => ({ name: `${gcs.prefix}${randomUUID().slice(0, 8)}`, incarnation: randomUUID() });
  const account = async () => {
    const uid = `trivet-${randomUUID()}`;
    await gcs.backend.putPrincipal({ uid, accessKeyId: '', secretAccessKey: '', displayName: 'one' }, none());
    return uid;
  };

  it('is made where its class says, with rights by IAM alone and nothing for everybody', async () => {
    const [here, there] = [newRef(), newRef()];
    await gcs.backend.createBucket(here, plain(), none());
    const kept = gcs.opened({ softDeleteDays: 0 });
    const kmsKey = 'projects/p/locations/l/keyRings/r/cryptoKeys/k';
    await kept.createBucket(there, { ...plain({ region: 'us-east4' }), encryption: 'SSE-KMS', kmsKey }, none());
    const uniform = { uniformBucketLevelAccess: { enabled: true }, publicAccessPrevention: 'enforced' };
    expect(gcs.project.bucket(here.name)).toMatchObject({ location: 'EUROPE-WEST3', iamConfiguration: uniform });
    expect(gcs.project.bucket(there.name)).toMatchObject({
      location: 'US-EAST4',
      softDeletePolicy: { retentionDurationSeconds: '0' },
      encryption: { defaultKmsKeyName: kmsKey },
    });
    gcs.project.bucket(here.name).iamConfiguration = { publicAccessPrevention: 'inherited' };
    await gcs.backend.configureBucket(here, plain(), none());
    expect(gcs.project.bucket(here.name)).toMatchObject({ iamConfiguration: uniform });
    kept.close();
  });

  it('of another project is nobody’s to look at', async () => {
    const { name, incarnation } = newRef();
    gcs.project.create({ name }, true);
    const foreign = { state: 'foreign', byTrivet: false, identity: undefined };
    expect(await gcs.backend.inspectBucket(name, none())).toEqual(foreign);
    await failsWith(gcs.backend.createBucket({ name, incarnation }, plain(), none()), 'already_exists');
    gcs.project.withheld.add('storage.buckets.list');
    try {
      await failsWith(gcs.backend.inspectBucket(name, none()), 'permission_denied');
    } finally {
      gcs.project.withheld.clear();
    }
  });

  it('that was made is not taken for somebody else’s when nobody can look at it', async () => {
    const ref = newRef();
    await gcs.backend.createBucket(ref, plain(), none());
    const bucketOf = gcs.project.bucket.bind(gcs.project);
    gcs.project.bucket = () => {
      throw new Refusal(503, 'backendError');
    };
    try {
      await failsWith(gcs.backend.createBucket(ref, plain(), none()), 'unavailable');
    } finally {
      gcs.project.bucket = bucketOf;
    }
    await gcs.backend.createBucket(ref, plain(), none());
  });

  it('keeps what others wrote into its policy, and loses nothing that they write meanwhile', async () => {
    const ref = newRef();
    await gcs.backend.createBucket(ref, plain(), none());
    const bucket = gcs.project.bucket(ref.name);
    const theirs = {
      role: 'roles/storage.objectViewer',
      members: ['user:somebody@example.net'],
      condition: { title: 'theirs', expression: 'resource.name.startsWith("projects/_/buckets/")' },
    };
    gcs.project.setPolicy(bucket, { version: 3, bindings: [...bucket.policy.bindings, theirs] });
    const before = bucket.policy.bindings;
    const uid = await account();
    await gcs.backend.putGrants(ref, [{ uid, mode: 'read_only' }], none());
    expect(bucket.policy.bindings).toEqual([
      ...before,
      expect.objectContaining({ role: 'roles/storage.objectViewer' }),
    ]);
    await gcs.backend.putGrants(ref, [], none());
    expect(bucket.policy.bindings).toEqual(before);
    // Its etag is another one by the time that ours is written.
    const setPolicy = gcs.project.setPolicy.bind(gcs.project);
    gcs.project.setPolicy = (at, given) => {
      gcs.project.setPolicy = setPolicy;
      setPolicy(at, { version: 3, bindings: before });
      setPolicy(at, given);
    };
    await failsWith(gcs.backend.putGrants(ref, [{ uid, mode: 'read_only' }], none()), 'failed_precondition');
    expect(bucket.policy.bindings).toEqual(before);
  });

  it('rewrites what a deleted account of ours left in it', async () => {
    const ref = newRef();
    await gcs.backend.createBucket(ref, plain(), none());
    const [gone, stays] = [await account(), await account()];
    const grants = [{ uid: stays, mode: 'read_write' as const }];
    await gcs.backend.putGrants(ref, [...grants, { uid: gone, mode: 'read_write' }], none());
    const { email } = [...gcs.project.accounts.values()].find(({ displayName }) => displayName === gone)!;
    gcs.project.deleteAccount(email);
    expect(await gcs.backend.holdsGrants(ref, grants, none())).toBe(false);
    await gcs.backend.putGrants(ref, grants, none());
    expect(await gcs.grants(ref.name)).toEqual(grants);
  });

  it('waits for a service account that is not known everywhere yet', async () => {
    const ref = newRef();
    await gcs.backend.createBucket(ref, plain(), none());
    await failsWith(gcs.backend.putGrants(ref, [{ uid: 'nobody', mode: 'read_only' }], none()), 'aborted');
    const uid = await account();
    const createKey = gcs.project.createKey.bind(gcs.project);
    gcs.project.createKey = () => createKey('nobody');
    try {
      await failsWith(gcs.backend.issueKey(uid, none()), 'aborted');
    } finally {
      gcs.project.createKey = createKey;
    }
    await gcs.backend.issueKey(uid, none());
  });

  it('says that the project has as many service accounts as it may', async () => {
    const left = Array.from({ length: 100 - gcs.project.accounts.size }, (_, n) =>
      gcs.project.createAccount(`filler-${n}`, {}),
    );
    await expect(account()).rejects.toMatchObject({
      kind: 'resource_exhausted',
      message: expect.stringContaining('100 service accounts'),
    });
    for (const { email } of left) gcs.project.deleteAccount(email);
  });

  it('takes no service account that somebody else made', async () => {
    const uid = await account();
    const made = [...gcs.project.accounts.values()].find(({ displayName }) => displayName === uid)!;
    made.description = 'of somebody else';
    const principal = { uid, accessKeyId: '', secretAccessKey: '', displayName: 'one' };
    await failsWith(gcs.backend.putPrincipal(principal, none()), 'already_exists');
    await failsWith(gcs.backend.removePrincipal(uid, none()), 'already_exists');
    expect(gcs.project.accounts.has(made.email)).toBe(true);
  });

  it('keeps who else may use an account, writes nothing over it, and waits for one that is not known yet', async () => {
    const { backend, project } = gcs;
    const keyless = gcs.opened({ workloadIdentityPool: POOL });
    const uid = `trivet-sa-${randomUUID()}`;
    const trusts = { namespace: 'shop', name: 'uploader' };
    const principal = { uid, accessKeyId: '', secretAccessKey: '', displayName: 'one', trusts };
    const found = project.account.bind(project);
    project.account = () => found('nobody');
    await failsWith(keyless.putPrincipal(principal, none()), 'aborted');
    project.account = found;
    const account = [...project.accounts.values()].find(({ displayName }) => displayName === uid)!;
    const theirs = { role: 'roles/iam.serviceAccountViewer', members: ['user:auditor@example.net'] };
    const write = project.setAccountPolicy.bind(project);
    project.setAccountPolicy = (at, given) => {
      project.setAccountPolicy = write;
      write(at, { version: 1, bindings: [theirs] });
      write(at, given);
    };
    await failsWith(keyless.putPrincipal(principal, none()), 'aborted');
    expect(account.policy.bindings).toEqual([theirs]);
    project.createKey(account.email);
    await keyless.putPrincipal(principal, none());
    const member = `principal://iam.googleapis.com/${POOL}/subject/system:serviceaccount:shop:uploader`;
    const ours = { role: 'roles/iam.workloadIdentityUser', members: [member] };
    expect(account.policy.bindings).toEqual([theirs, ours]);
    expect(project.keysOf(account.email)).toEqual([]);
    // A second way in by the same role, and one under a condition, go.
    write(account, {
      version: 3,
      bindings: [theirs, ours, { ...ours, condition: { title: 'x', expression: 'true' } }],
    });
    expect(await keyless.holdsPrincipal(principal, none())).toBe(false);
    await keyless.putPrincipal(principal, none());
    expect(account.policy.bindings).toEqual([theirs, ours]);
    const long = { ...principal, uid: `${uid}x`, trusts: { namespace: 'shop', name: 'n'.repeat(120) } };
    await failsWith(keyless.putPrincipal(long, none()), 'invalid_argument');
    expect([...project.accounts.values()].filter(({ displayName }) => displayName === long.uid)).toEqual([]);
    await backend.removePrincipal(uid, none());
    keyless.close();
  });

  it.each(['with a key', 'without one'])(
    'of an account %s, takes every HMAC key away by each of its calls',
    async how => {
      const { project } = gcs;
      const keyless = gcs.opened({ workloadIdentityPool: POOL });
      const isKeyless = how === 'without one';
      const uid = isKeyless ? `trivet-sa-${randomUUID()}` : await account();
      const trusts = isKeyless ? { namespace: 'shop', name: 'uploader' } : undefined;
      const principal = { uid, accessKeyId: '', secretAccessKey: '', displayName: 'one', trusts };
      await keyless.putPrincipal(principal, none());
      const { email } = [...project.accounts.values()].find(({ displayName }) => displayName === uid)!;
      project.createKey(email);
      expect(await keyless.holdsPrincipal(principal, none())).toBe(false);
      await keyless.removeKey({ uid, accessKeyId: '' }, none());
      expect(project.keysOf(email)).toEqual([]);
      expect(await keyless.holdsPrincipal(principal, none())).toBe(isKeyless);
      // Whoever made it after that is shut out too, whatever becomes of the keys of an account that goes.
      project.createKey(email);
      const remove = project.deleteAccount.bind(project);
      const left: unknown[] = [];
      project.deleteAccount = at => {
        left.push(project.keysOf(at));
        remove(at);
      };
      try {
        await keyless.removePrincipal(uid, none());
      } finally {
        project.deleteAccount = remove;
      }
      expect(left).toEqual([[]]);
      keyless.close();
    },
  );

  it('loses what was begun to be uploaded when it is emptied', async () => {
    const ref = newRef();
    await gcs.backend.createBucket(ref, plain(), none());
    const uid = await account();
    await gcs.backend.putGrants(ref, [{ uid, mode: 'write_only' }], none());
    const holder = gcs.clientFor(await gcs.backend.issueKey(uid, none()));
    await holder.send(new CreateMultipartUploadCommand({ Bucket: ref.name, Key: 'a half & <more>' }));
    expect(await gcs.backend.isBucketEmpty(ref, none())).toBe(false);
    expect(await gcs.backend.deleteBucket(ref, none())).toBe('not_empty');
    expect(await gcs.backend.emptyBucket(ref, none())).toEqual({ done: true, removed: 1 });
    expect(await gcs.backend.deleteBucket(ref, none())).toBe('deleted');
  });

  it('is asked for in words when something is wrong', async () => {
    const names = ['storage', 'iam', 'rights'];
    const checks = await gcs.backend.diagnose(none());
    expect(checks.map(({ name, ok }) => [name, ok])).toEqual(names.map(name => [name, true]));
    gcs.project.withheld.add('storage.hmacKeys.create').add('storage.buckets.list');
    expect(await gcs.backend.diagnose(none())).toMatchObject([
      { ok: false, detail: expect.stringContaining('Trivet needs the right storage.buckets.list') },
      { ok: true },
      { ok: false, detail: expect.stringContaining('storage.buckets.list, storage.hmacKeys.create') },
    ]);
    gcs.project.withheld.clear();
    expect((await gcs.unreachable.diagnose(none())).map(({ ok }) => ok)).toEqual([false, false, false]);
    gcs.server.skew = 7_200;
    expect(await gcs.backend.diagnose(none())).toMatchObject([
      { ok: false, detail: expect.stringContaining('clocks') },
      { ok: false },
      { ok: false },
    ]);
    gcs.server.skew = 0;
  });
});
