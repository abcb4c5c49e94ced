/**
 * What every ObjectBackend must do, whatever store is behind it: the sentences of the port, as tests. An adapter brings
 * a harness through which the suite looks at the store by other means than the port.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  type BucketRef,
  type BucketSpec,
  type Grant,
  type ObjectBackend,
  type Principal,
  ReplacedBucket,
} from '#backends/object-backend';
import { parseS3BucketParameters } from '#backends/s3/bucket-parameters';
import type { ErrorKind } from '#platform/errors';
import { unleased } from '#platform/lease-signal';

export interface ObjectBackendHarness {
  backend: ObjectBackend;
  /** Another tenant of the same appliance on the same store. */
  otherTenant: ObjectBackend;
  /** Cannot reach its store, or does not get in. */
  unreachable: ObjectBackend;
  refused: ObjectBackend;
  /** Names begin with it; the harness removes what is left under it. */
  prefix: string;
  /** A bucket made by somebody else. */
  seedForeignBucket(name: string): Promise<void>;
  /** One that may be registered, where that is not any bucket of somebody else's. */
  seedRegistrable?(name: string): Promise<void>;
  /** Its owner deletes it, and somebody makes the name again. */
  replaceForeignBucket(name: string): Promise<void>;
  foreignBucketExists(name: string): Promise<boolean>;
  /** Puts objects into a bucket of ours, in several versions where it keeps versions. */
  seedObjects(name: string, count: number): Promise<void>;
  /** Leaves something that cannot be deleted now; returns its key. */
  seedLockedObject(name: string): Promise<string>;
  /** Takes all tags off a bucket of ours, behind Trivet's back. */
  dropTags(name: string): Promise<void>;
  bucketSpec(name: string): Promise<Pick<BucketSpec, 'versioning' | 'quotaMaxSize' | 'quotaMaxObjects' | 'tags'>>;
  /** The store's own view of keys; undefined when it has no such principal. */
  principalKeys(uid: string): Promise<{ accessKeyId: string; secretAccessKey: string }[] | undefined>;
  /** Another key of the principal, where keys are issued: made by somebody else. */
  seedKey?(uid: string): Promise<void>;
  /** By the store's own view. */
  grants(name: string): Promise<Grant[]>;
  close(): Promise<void>;
}

/** What a store has not, or has in another way; the port says for each what is done then. */
export interface SuiteTraits {
  /** No users and keys of its own: `signAccess` opens a bucket. */
  signs?: boolean;
  /** A bucket carries its marks from its first moment: none is ever `untagged`, and one that lost them is no more ours. */
  marksAtOnce?: boolean;
  /** Nothing tells a bucket from a later one of its name. */
  namesAlone?: boolean;
  /** No versioning, object lock, quotas and limit of a tenant. */
  plainBuckets?: boolean;
  /** Versioning and object lock, and no quotas nor limit of a tenant. */
  noQuotas?: boolean;
  /** Keys are issued, and rights belong to principals. */
  issuesKeys?: boolean;
}

const none = () => unleased(AbortSignal.timeout(60_000));
const plain = (parameters: Record<string, string> = {}): BucketSpec => parseS3BucketParameters(parameters);

export function describeObjectBackend(
  name: string,
  setup: () => Promise<ObjectBackendHarness>,
  traits: SuiteTraits = {},
): void {
  const identity = traits.namesAlone ? undefined : expect.any(String);

  describe(`object backend: ${name}`, () => {
    let harness: ObjectBackendHarness;
    let backend: ObjectBackend;
    const uids: string[] = [];
    let count = 0;

    beforeAll(async () => {
      harness = await setup();
      backend = harness.backend;
    });
    afterEach(async () => {
      for (const uid of uids.splice(0)) await backend.removePrincipal(uid, none());
    });
    afterAll(() => harness?.close());

    const newRef = (): BucketRef => ({ name: `${harness.prefix}${++count}`, incarnation: randomUUID() });
    const newPrincipal = (): Principal => {
      const uid = `trivet-${randomUUID()}`;
      uids.push(uid);
      const id = randomUUID().replaceAll('-', '').toUpperCase();
      return { uid, accessKeyId: id.slice(0, 20), secretAccessKey: `${id}secret`, displayName: 'conformance' };
    };
    async function make(parameters: Record<string, string> = {}): Promise<BucketRef> {
      const ref = newRef();
      await backend.createBucket(ref, plain(parameters), none());
      await backend.configureBucket(ref, plain(parameters), none());
      return ref;
    }
    async function remove(ref: BucketRef): Promise<void> {
      while (!(await backend.emptyBucket(ref, none())).done);
      await backend.deleteBucket(ref, none());
    }
    const failsWith = (promise: Promise<unknown>, kind: ErrorKind) =>
      expect(promise).rejects.toMatchObject({ name: 'StorageError', kind });
    /** What a store must look at the bucket for: where rights belong to principals, only that something is allowed. */
    const givenTo = (): Grant[][] => {
      const allowed: Grant[] = [{ uid: newPrincipal().uid, mode: 'read_only' }];
      return traits.issuesKeys ? [allowed] : [allowed, []];
    };
    const sorted = (grants: Grant[]) => grants.toSorted((a, b) => (a.uid < b.uid ? -1 : 1));

    describe('health', () => {
      it('answers when the store can be used', () => expect(backend.health(none())).resolves.toBeUndefined());
      it('rejects with unavailable when the store cannot be reached', () =>
        failsWith(harness.unreachable.health(none()), 'unavailable'));
      it('rejects when the store does not accept our credentials', () =>
        failsWith(harness.refused.health(none()), 'unauthenticated'));
    });

    describe('errors at the border', () => {
      it('says unavailable from every method when the store is down', async () => {
        const down = harness.unreachable;
        const ref = newRef();
        const principal = { ...newPrincipal() };
        await failsWith(down.inspectBucket(ref.name, none()), 'unavailable');
        await failsWith(down.createBucket(ref, plain(), none()), 'unavailable');
        await failsWith(down.configureBucket(ref, plain(), none()), 'unavailable');
        await failsWith(down.emptyBucket(ref, none()), 'unavailable');
        await failsWith(down.deleteBucket(ref, none()), 'unavailable');
        await failsWith(down.putGrants(ref, [], none(), [principal.uid]), 'unavailable');
        if (traits.signs) return;
        await failsWith(down.putPrincipal(principal, none()), 'unavailable');
        await failsWith(down.removeKey(principal, none()), 'unavailable');
        await failsWith(down.removePrincipal(principal.uid, none()), 'unavailable');
      });

      it('says unauthenticated from every method when our credentials are refused', async () => {
        const { refused } = harness;
        const ref = newRef();
        const principal = newPrincipal();
        await failsWith(refused.inspectBucket(ref.name, none()), 'unauthenticated');
        await failsWith(refused.createBucket(ref, plain(), none()), 'unauthenticated');
        await failsWith(refused.deleteBucket(ref, none()), 'unauthenticated');
        await failsWith(refused.putGrants(ref, [], none(), [principal.uid]), 'unauthenticated');
        if (traits.signs) return;
        await failsWith(refused.putPrincipal(principal, none()), 'unauthenticated');
        await failsWith(refused.removeKey(principal, none()), 'unauthenticated');
        await failsWith(refused.removePrincipal(principal.uid, none()), 'unauthenticated');
      });

      it('says timeout when the signal has fired', async () => {
        const ref = newRef();
        await failsWith(backend.inspectBucket(ref.name, unleased(AbortSignal.abort())), 'timeout');
        await failsWith(backend.createBucket(ref, plain(), unleased(AbortSignal.abort())), 'timeout');
        expect(await backend.inspectBucket(ref.name, none())).toEqual({ state: 'absent' });
      });
    });

    describe('buckets', () => {
      it.runIf(traits.marksAtOnce)('goes absent, ours, absent', async () => {
        const ref = newRef();
        expect(await backend.inspectBucket(ref.name, none())).toEqual({ state: 'absent' });
        await backend.createBucket(ref, plain(), none());
        await backend.createBucket(ref, plain(), none());
        expect(await backend.inspectBucket(ref.name, none())).toEqual({ state: 'ours', incarnation: ref.incarnation });
        await failsWith(backend.createBucket({ ...ref, incarnation: randomUUID() }, plain(), none()), 'already_exists');
        expect(await backend.deleteBucket(ref, none())).toBe('deleted');
        expect(await backend.inspectBucket(ref.name, none())).toEqual({ state: 'absent' });
      });

      it.skipIf(traits.marksAtOnce)('goes absent, untagged, ours, absent', async () => {
        const ref = newRef();
        expect(await backend.inspectBucket(ref.name, none())).toEqual({ state: 'absent' });
        await backend.createBucket(ref, plain(), none());
        expect(await backend.inspectBucket(ref.name, none())).toEqual({
          state: 'untagged',
          empty: true,
          identity,
        });
        await backend.configureBucket(ref, plain(), none());
        expect(await backend.inspectBucket(ref.name, none())).toEqual({ state: 'ours', incarnation: ref.incarnation });
        expect(await backend.deleteBucket(ref, none())).toBe('deleted');
        expect(await backend.inspectBucket(ref.name, none())).toEqual({ state: 'absent' });
      });

      it.skipIf(traits.marksAtOnce)('tells an untagged bucket that holds objects from an empty one', async () => {
        const ref = newRef();
        await backend.createBucket(ref, plain(), none());
        await harness.seedObjects(ref.name, 1);
        expect(await backend.inspectBucket(ref.name, none())).toEqual({
          state: 'untagged',
          empty: false,
          identity,
        });
        await backend.configureBucket(ref, plain(), none());
        await remove(ref);
      });

      it('repeats create and configure without harm', async () => {
        const quotas = { quotaMaxSize: '10Mi', quotaMaxObjects: '100' };
        const limited = !traits.plainBuckets && !traits.noQuotas;
        const parameters = {
          ...(traits.plainBuckets ? {} : { versioning: 'true' }),
          ...(limited ? quotas : {}),
          tags: 'b=2,a=1',
        };
        const ref = await make(parameters);
        await harness.seedObjects(ref.name, 1);
        await backend.createBucket(ref, plain(parameters), none());
        await backend.configureBucket(ref, plain(parameters), none());
        expect(await harness.bucketSpec(ref.name)).toEqual({
          versioning: !traits.plainBuckets,
          ...(limited ? { quotaMaxSize: '10485760', quotaMaxObjects: '100' } : {}),
          tags: { a: '1', b: '2' },
        });
        expect(await backend.deleteBucket(ref, none())).toBe('not_empty');
        await remove(ref);
      });

      it('makes a bucket without quota, tags and versioning when nothing is asked', async () => {
        const ref = await make();
        expect(await harness.bucketSpec(ref.name)).toEqual({ versioning: false, tags: {} });
        await remove(ref);
      });

      it('never adopts, configures, empties or deletes a foreign bucket', async () => {
        const ref = newRef();
        await harness.seedForeignBucket(ref.name);
        expect(await backend.inspectBucket(ref.name, none())).toEqual({
          state: 'foreign',
          byTrivet: false,
          identity,
        });
        await failsWith(backend.createBucket(ref, plain(), none()), 'already_exists');
        await failsWith(backend.configureBucket(ref, plain(), none()), 'failed_precondition');
        await failsWith(backend.emptyBucket(ref, none()), 'failed_precondition');
        expect(await backend.deleteBucket(ref, none())).toBe('foreign');
        expect(await harness.foreignBucketExists(ref.name)).toBe(true);
      });

      it('treats the bucket of another tenant as foreign', async () => {
        const ref = await make();
        const other = { ...ref };
        expect(await harness.otherTenant.inspectBucket(ref.name, none())).toEqual({
          state: 'foreign',
          byTrivet: true,
          identity,
        });
        await failsWith(harness.otherTenant.createBucket(other, plain(), none()), 'already_exists');
        expect(await harness.otherTenant.deleteBucket(other, none())).toBe('foreign');
        await remove(ref);
      });

      it('says how many bytes it holds', async () => {
        const ref = await make();
        expect(await backend.measureBucket(ref.name, none())).toBe(0n);
        await harness.seedObjects(ref.name, 2);
        const deadline = Date.now() + 20_000;
        let bytes: bigint | undefined = 0n;
        while (bytes === 0n && Date.now() < deadline) bytes = await backend.measureBucket(ref.name, none());
        expect(bytes).toBeGreaterThan(0n);
        await remove(ref);
        expect(await backend.measureBucket(ref.name, none())).toBeUndefined();
      });

      it.skipIf(traits.plainBuckets || traits.noQuotas)(
        'takes a limit for the tenant, and takes it away, however often',
        async () => {
          for (const bytes of [10_000_000n, 10_000_000n, undefined, undefined])
            await backend.limitTenant(bytes, none());
        },
      );

      it.runIf(traits.plainBuckets || traits.noQuotas)(
        'says that it has no limit for a tenant, and takes that there is none',
        async () => {
          await failsWith(backend.limitTenant(10_000_000n, none()), 'unimplemented');
          await backend.limitTenant(undefined, none());
        },
      );

      it('touches nothing under another incarnation of the name', async () => {
        const ref = await make();
        const stale = { name: ref.name, incarnation: randomUUID() };
        await harness.seedObjects(ref.name, 2);
        await failsWith(backend.configureBucket(stale, plain(), none()), 'failed_precondition');
        await failsWith(backend.emptyBucket(stale, none()), 'failed_precondition');
        expect(await backend.deleteBucket(stale, none())).toBe('foreign');
        for (const grants of givenTo()) await failsWith(backend.putGrants(stale, grants, none()), 'not_found');
        expect(await backend.inspectBucket(ref.name, none())).toEqual({ state: 'ours', incarnation: ref.incarnation });
        expect(await backend.deleteBucket(ref, none())).toBe('not_empty');
        await remove(ref);
      });

      it('says whether this very bucket holds anything', async () => {
        const ref = await make();
        expect(await backend.isBucketEmpty(ref, none())).toBe(true);
        await harness.seedObjects(ref.name, 1);
        expect(await backend.isBucketEmpty(ref, none())).toBe(false);
        expect(await backend.isBucketEmpty({ ...ref, incarnation: randomUUID() }, none())).toBe(true);
        await remove(ref);
        expect(await backend.isBucketEmpty(ref, none())).toBe(true);
      });

      it('answers absent for a missing bucket and has nothing to empty in it', async () => {
        const ref = newRef();
        expect(await backend.deleteBucket(ref, none())).toBe('absent');
        expect(await backend.emptyBucket(ref, none())).toEqual({ done: true, removed: 0 });
        await failsWith(backend.configureBucket(ref, plain(), none()), 'not_found');
      });

      it('empties in bounded portions until nothing is left', async () => {
        const ref = await make(traits.plainBuckets ? {} : { versioning: 'true' });
        await harness.seedObjects(ref.name, 5);
        let removed = 0;
        for (;;) {
          const step = await backend.emptyBucket(ref, none());
          removed += step.removed;
          if (step.done) break;
        }
        expect(removed).toBeGreaterThanOrEqual(5);
        expect(await backend.deleteBucket(ref, none())).toBe('deleted');
      });

      it('refuses to empty what is locked and names the object', async () => {
        const ref = await make(traits.plainBuckets ? {} : { objectLock: 'true' });
        const key = await harness.seedLockedObject(ref.name);
        const error = await backend.emptyBucket(ref, none()).catch((e: Error) => e);
        expect(error).toMatchObject({ kind: 'failed_precondition' });
        expect((error as Error).message).toContain(key);
        expect(await backend.deleteBucket(ref, none())).toBe('not_empty');
      });
    });

    describe.runIf(traits.signs)('signatures', () => {
      it('signs the same each time, and another for each bucket and principal', async () => {
        const [a, b] = [newPrincipal(), newPrincipal()];
        const token = backend.signAccess('photos', a.uid);
        expect(token).toEqual(expect.any(String));
        expect(backend.signAccess('photos', a.uid)).toBe(token);
        expect(backend.signAccess('films', a.uid)).not.toBe(token);
        expect(backend.signAccess('photos', b.uid)).not.toBe(token);
        expect(await backend.holdsPrincipal({ ...a, token }, none())).toBe(true);
        expect(await backend.holdsPrincipal({ ...b, token }, none())).toBe(false);
        expect(await backend.holdsPrincipal(a, none())).toBe(false);
      });
    });

    describe.runIf(traits.issuesKeys)('issued keys', () => {
      it('makes the principal, and one key at a time, whatever was there', async () => {
        const { uid } = newPrincipal();
        const principal = (accessKeyId: string) => ({ uid, accessKeyId, secretAccessKey: '', displayName: 'issued' });
        await failsWith(backend.issueKey(uid, none()), 'not_found');
        await backend.putPrincipal(principal(''), none());
        await backend.putPrincipal(principal(''), none());
        const first = await backend.issueKey(uid, none());
        expect(await backend.holdsPrincipal(principal(first.accessKeyId), none())).toBe(true);
        // Its secret was lost with a worker.
        const second = await backend.issueKey(uid, none());
        expect(second.secretAccessKey).not.toBe(first.secretAccessKey);
        expect((await harness.principalKeys(uid))?.map(({ accessKeyId }) => accessKeyId)).toEqual([second.accessKeyId]);
        expect(await backend.holdsPrincipal(principal(first.accessKeyId), none())).toBe(false);
        await backend.removeKey(principal(''), none());
        await backend.removeKey(principal(''), none());
        expect(await harness.principalKeys(uid)).toEqual([]);
        await backend.removePrincipal(uid, none());
        await backend.removePrincipal(uid, none());
        expect(await harness.principalKeys(uid)).toBeUndefined();
      });

      it('says as the holder whether rights and key are in force', async () => {
        const ref = await make();
        const { uid, ...rest } = newPrincipal();
        await backend.putPrincipal({ uid, ...rest }, none());
        const key = await backend.issueKey(uid, none());
        const right = (mode: Grant['mode']) => [{ bucket: ref.name, mode }];
        expect(await backend.isInForce(key, right('read_write'), none())).toBe(false);
        for (const mode of ['read_write', 'read_only', 'write_only', 'revoked'] as const) {
          await backend.putGrants(ref, [{ uid, mode }], none(), [uid]);
          expect(await backend.isInForce(key, right(mode), none()), mode).toBe(true);
          expect(await backend.isInForce(key, right('revoked'), none()), mode).toBe(mode === 'revoked');
        }
        expect(await backend.isInForce(key, right('write_only'), none())).toBe(false);
        expect(await backend.isInForce(key, [], none())).toBe(true);
        expect(await backend.isInForce(key, 'no key', none())).toBe(false);
        await backend.putGrants(ref, [], none(), [uid]);
        expect(await backend.isInForce(key, right('revoked'), none())).toBe(true);
        await backend.putGrants(ref, [{ uid, mode: 'read_write' }], none(), [uid]);
        await remove(ref);
        expect(await backend.isInForce(key, right('revoked'), none())).toBe(true);
        await failsWith(backend.isInForce(key, right('read_write'), none()), 'not_found');
        await backend.removeKey({ uid, accessKeyId: '' }, none());
        expect(await backend.isInForce(key, 'no key', none())).toBe(true);
        expect(await backend.isInForce(key, right('revoked'), none())).toBe(true);
      });

      it('takes away what other keys a principal has when its own is given', async () => {
        const principal = newPrincipal();
        await backend.putPrincipal({ ...principal, accessKeyId: '' }, none());
        const { accessKeyId } = await backend.issueKey(principal.uid, none());
        await harness.seedKey!(principal.uid);
        const own = { ...principal, accessKeyId };
        expect(await backend.holdsPrincipal(own, none())).toBe(false);
        await backend.putPrincipal(own, none());
        expect(await backend.holdsPrincipal(own, none())).toBe(true);
      });

      it('denies and takes away at a bucket that lost its tags, or is gone, and touches nobody else', async () => {
        const ref = await make();
        const [a, b] = [newPrincipal(), newPrincipal()];
        for (const principal of [a, b]) await backend.putPrincipal(principal, none());
        const both: Grant[] = [a, b].map(({ uid }) => ({ uid, mode: 'read_write' }));
        await backend.putGrants(ref, both, none(), [a.uid, b.uid]);
        await harness.dropTags(ref.name);
        await backend.putGrants(ref, [], none(), [a.uid]);
        expect(await harness.grants(ref.name)).toEqual([both[1]]);
        await backend.configureBucket(ref, plain(), none());
        await remove(ref);
        const denied: Grant[] = [{ uid: b.uid, mode: 'revoked' }];
        await backend.putGrants(ref, denied, none(), [b.uid]);
        expect(await harness.grants(ref.name)).toEqual(denied);
        expect(await backend.holdsGrants(ref, denied, none(), [b.uid])).toBe(true);
        await backend.putGrants(ref, [], none(), [b.uid]);
        expect(await harness.grants(ref.name)).toEqual([]);
      });
    });

    describe.skipIf(traits.signs || traits.issuesKeys)('principals', () => {
      it('makes the principal and its key exactly as given, and repeats', async () => {
        const principal = newPrincipal();
        const { accessKeyId, secretAccessKey } = principal;
        await backend.putPrincipal(principal, none());
        await backend.putPrincipal(principal, none());
        expect(await harness.principalKeys(principal.uid)).toEqual([{ accessKeyId, secretAccessKey }]);
      });

      it('says whether it holds the principal as given', async () => {
        const principal = newPrincipal();
        expect(await backend.holdsPrincipal(principal, none())).toBe(false);
        await backend.putPrincipal(principal, none());
        expect(await backend.holdsPrincipal(principal, none())).toBe(true);
        expect(await backend.holdsPrincipal({ ...principal, secretAccessKey: 'another-secret-0123' }, none())).toBe(
          false,
        );
        await backend.removeKey(principal, none());
        expect(await backend.holdsPrincipal(principal, none())).toBe(false);
      });

      it('leaves exactly one key when another one is given', async () => {
        const principal = newPrincipal();
        await backend.putPrincipal(principal, none());
        const next = { ...newPrincipal(), uid: principal.uid };
        await backend.putPrincipal(next, none());
        expect(await harness.principalKeys(principal.uid)).toEqual([
          { accessKeyId: next.accessKeyId, secretAccessKey: next.secretAccessKey },
        ]);
      });

      it('puts a secret right that differs at the store', async () => {
        const principal = newPrincipal();
        await backend.putPrincipal({ ...principal, secretAccessKey: 'another-secret-0123456789' }, none());
        await backend.putPrincipal(principal, none());
        expect(await harness.principalKeys(principal.uid)).toEqual([
          { accessKeyId: principal.accessKeyId, secretAccessKey: principal.secretAccessKey },
        ]);
      });

      it('does not take a key id away from another principal', async () => {
        const one = newPrincipal();
        const two = { ...newPrincipal(), accessKeyId: one.accessKeyId };
        await backend.putPrincipal(one, none());
        await failsWith(backend.putPrincipal(two, none()), 'already_exists');
        expect(await harness.principalKeys(one.uid)).toEqual([
          { accessKeyId: one.accessKeyId, secretAccessKey: one.secretAccessKey },
        ]);
      });

      it('takes key and principal away, each any number of times', async () => {
        const principal = newPrincipal();
        await backend.removeKey(principal, none());
        await backend.removePrincipal(principal.uid, none());
        await backend.putPrincipal(principal, none());
        await backend.removeKey(principal, none());
        await backend.removeKey(principal, none());
        expect(await harness.principalKeys(principal.uid)).toEqual([]);
        await backend.removePrincipal(principal.uid, none());
        await backend.removePrincipal(principal.uid, none());
        expect(await harness.principalKeys(principal.uid)).toBeUndefined();
      });
    });

    describe('grants', () => {
      it('says exactly what is given, however often and in whatever order', async () => {
        const ref = await make();
        const [a, b, c] = [newPrincipal(), newPrincipal(), newPrincipal()];
        for (const principal of [a, b, c]) await backend.putPrincipal(principal, none());
        const grants: Grant[] = [
          { uid: a.uid, mode: 'read_write' },
          { uid: b.uid, mode: 'write_only' },
          { uid: c.uid, mode: 'revoked' },
        ];
        const all = [a.uid, b.uid, c.uid];
        await backend.putGrants(ref, grants, none(), all);
        await backend.putGrants(ref, grants.toReversed(), none(), all);
        // Who is revoked where everything is refused that is not allowed needs no word.
        const said = grants.filter(({ mode }) => !(traits.signs && mode === 'revoked'));
        expect(sorted(await harness.grants(ref.name))).toEqual(sorted(said));
        expect(await backend.holdsGrants(ref, grants, none(), all)).toBe(true);
        expect(await backend.holdsGrants(ref, grants.slice(1), none(), all)).toBe(false);
        await backend.putGrants(ref, [{ uid: a.uid, mode: 'read_only' }], none(), all);
        expect(await harness.grants(ref.name)).toEqual([{ uid: a.uid, mode: 'read_only' }]);
        await backend.putGrants(ref, [], none(), all);
        await backend.putGrants(ref, [], none(), all);
        expect(await harness.grants(ref.name)).toEqual([]);
        await remove(ref);
      });

      it('is not_found for a missing bucket', async () => {
        for (const grants of givenTo()) {
          await failsWith(backend.putGrants(newRef(), grants, none()), 'not_found');
          await failsWith(backend.putGrants({ name: newRef().name }, grants, none()), 'not_found');
        }
        expect(await backend.holdsGrants(newRef(), [{ uid: newPrincipal().uid, mode: 'read_only' }], none())).toBe(
          false,
        );
      });

      it('does not take a bucket for gone that lost its tags', async () => {
        const ref = await make();
        await harness.dropTags(ref.name);
        for (const grants of givenTo()) await failsWith(backend.putGrants(ref, grants, none()), 'failed_precondition');
        expect(await backend.deleteBucket(ref, none())).toBe('foreign');
        if (traits.marksAtOnce) return failsWith(backend.configureBucket(ref, plain(), none()), 'failed_precondition');
        await backend.configureBucket(ref, plain(), none());
        await backend.putGrants(ref, [], none());
        await remove(ref);
      });

      it('writes the grants of a registered bucket that somebody else made', async () => {
        const { name } = newRef();
        const principal = newPrincipal();
        await (harness.seedRegistrable ?? harness.seedForeignBucket)(name);
        await backend.putPrincipal(principal, none());
        await backend.putGrants({ name }, [{ uid: principal.uid, mode: 'read_only' }], none());
        expect(await harness.grants(name)).toEqual([{ uid: principal.uid, mode: 'read_only' }]);
        await backend.putGrants({ name }, [], none(), [principal.uid]);
        expect(await harness.grants(name)).toEqual([]);
      });

      it.skipIf(traits.namesAlone)('tells a registered bucket from another one that was given its name', async () => {
        const { name } = newRef();
        const identityNow = async () => {
          const found = await backend.inspectBucket(name, none());
          return 'identity' in found ? found.identity : undefined;
        };
        await harness.seedForeignBucket(name);
        const identity = await identityNow();
        const grants: Grant[] = [{ uid: newPrincipal().uid, mode: 'read_only' }];
        await backend.putGrants({ name, identity }, grants, none());
        expect(await identityNow()).toBe(identity);
        expect(await backend.holdsGrants({ name, identity }, grants, none())).toBe(true);

        await harness.replaceForeignBucket(name);
        expect(await identityNow()).not.toBe(identity);
        for (const asked of [grants, []]) {
          await expect(backend.putGrants({ name, identity }, asked, none())).rejects.toBeInstanceOf(ReplacedBucket);
          expect(await backend.holdsGrants({ name, identity }, asked, none())).toBe(false);
        }
        expect(await harness.grants(name)).toEqual([]);
      });

      it.skipIf(traits.issuesKeys)('refuses more than a policy can hold and leaves what is there', async () => {
        const ref = await make();
        const kept = newPrincipal();
        await backend.putPrincipal(kept, none());
        await backend.putGrants(ref, [{ uid: kept.uid, mode: 'read_write' }], none());
        const many: Grant[] = Array.from({ length: 5000 }, (_, n) => ({
          uid: `trivet-many-${n}-${'x'.repeat(40)}`,
          mode: 'read_write',
        }));
        await failsWith(backend.putGrants(ref, many, none()), 'resource_exhausted');
        expect(await harness.grants(ref.name)).toEqual([{ uid: kept.uid, mode: 'read_write' }]);
        await backend.putGrants(ref, [], none());
        await remove(ref);
      });
    });
  });
}
