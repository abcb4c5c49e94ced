import { describe, expect, it } from 'vitest';
import { type Dialect } from '#test/cosi/client';
import { type Context, createRequest } from '#test/cosi/conformance/context';
import { v1alpha1Create, v1alpha2Bucket } from '#test/cosi/sidecar-checks';

export function createBucketCases(context: Context): void {
  describe('DriverCreateBucket', () => {
    it.each(context.dialects)('%s: makes one bucket, named as asked, and repeats the reply', async dialect => {
      const name = context.bucket();
      const request = createRequest(dialect, name, { versioning: 'true' });
      const first = await context.settle(dialect, 'DriverCreateBucket', request);
      const again = await context.settle(dialect, 'DriverCreateBucket', request);
      expect(again).toEqual(first);
      expect(acceptedBy(dialect, first)).toEqual([]);
      if (dialect !== 'r4') expect(first.bucket_id).toBe(name);
      expect((await context.target.control.buckets()).filter(found => found.startsWith(name))).toEqual([name]);
    });

    it('v1alpha1: describes S3 with signature version 4', async () => {
      const name = context.bucket();
      const reply = await context.settle('v1alpha1', 'DriverCreateBucket', { name });
      expect(reply.bucket_info.s3).toMatchObject({ region: expect.stringMatching(/./), signature_version: 'S3V4' });
    });

    it('is the same bucket in every dialect', async () => {
      const name = context.bucket();
      for (const dialect of context.dialects) {
        await context.settle(dialect, 'DriverCreateBucket', createRequest(dialect, name, { versioning: 'true' }));
      }
      // No protocol is the backend's default, a repeated one is one.
      await context.settle('r1', 'DriverCreateBucket', createRequest('r1', name, { versioning: 'true' }, []));
      const twice = createRequest('r1', name, { versioning: 'true' }, [{ type: 'S3' }, { type: 'S3' }]);
      await context.settle('r1', 'DriverCreateBucket', twice);
      expect((await context.target.control.buckets()).filter(found => found === name)).toEqual([name]);
    });

    it('takes a default that is spelled out for an absent one', async () => {
      const name = await context.madeBucket();
      const spelled = createRequest('r1', name, { versioning: 'false', deletePolicy: 'retain' });
      await context.settle('r1', 'DriverCreateBucket', spelled);
    });

    it.each(context.dialects)('%s: other parameters are ALREADY_EXISTS', async dialect => {
      const name = await context.madeBucket({ versioning: 'true' });
      const other = createRequest(dialect, name, { versioning: 'false' });
      await context.refuse(dialect, 'DriverCreateBucket', other, 'ALREADY_EXISTS', differsIn(name));
    });

    it.each(context.dialects)('%s: a foreign bucket is neither adopted nor deleted', async dialect => {
      const name = context.bucket();
      await context.target.control.makeForeignBucket(name);
      await context.refuse(dialect, 'DriverCreateBucket', createRequest(dialect, name), 'ALREADY_EXISTS', name);
      await context.settle(dialect, 'DriverDeleteBucket', { bucket_id: name });
      expect(await context.target.control.buckets()).toContain(name);
    });

    it('eight callers at once make one bucket', async () => {
      const name = context.bucket();
      const calls = Array.from({ length: 8 }, (_, index) => (index % 2 === 0 ? 'v1alpha1' : 'r1') as Dialect);
      await Promise.all(
        calls.map(dialect => context.settle(dialect, 'DriverCreateBucket', createRequest(dialect, name))),
      );
      expect((await context.target.control.buckets()).filter(found => found === name)).toHaveLength(1);
    });

    it('UNAVAILABLE while the store is down, done by a repeat afterwards', async () => {
      const name = context.bucket();
      await context.target.control.setDown(true);
      try {
        await context.refuse('r1', 'DriverCreateBucket', createRequest('r1', name), 'UNAVAILABLE');
      } finally {
        await context.target.control.setDown(false);
      }
      await context.settle('r1', 'DriverCreateBucket', createRequest('r1', name));
      expect(await context.target.control.buckets()).toContain(name);
    });
  });

  describe('DriverGenerateBucketId', () => {
    it('gives the id that Create gives, without touching the store', async () => {
      const name = context.bucket();
      const request = { name, protocols: [{ type: 'S3' }], parameters: { versioning: 'true' } };
      await context.leavesNoTrace(async () => {
        const { bucket_id } = await context.settle('r4', 'DriverGenerateBucketId', request);
        expect(await context.settle('r4', 'DriverGenerateBucketId', request)).toEqual({ bucket_id });
        expect(bucket_id).toBe(name);
      });
      const created = await context.settle('r1', 'DriverCreateBucket', createRequest('r1', name));
      expect(created.bucket_id).toBe(name);
    });

    it('answers while the store is down', async () => {
      await context.target.control.setDown(true);
      try {
        await context.settle('r4', 'DriverGenerateBucketId', { name: context.bucket() });
      } finally {
        await context.target.control.setDown(false);
      }
    });

    it('refuses parameters that Create would refuse', async () => {
      const request = { name: context.bucket(), parameters: { quotaMaxSize: 'lots' } };
      await context.refuse('r4', 'DriverGenerateBucketId', request, 'INVALID_ARGUMENT', /quotaMaxSize/);
    });
  });
}

/** Names the bucket, and the one parameter that is another. */
const differsIn = (name: string): RegExp => new RegExp(`${name} .*: parameters\\[versioning\\]$`);

const acceptedBy = (dialect: Dialect, reply: unknown): string[] =>
  dialect === 'v1alpha1'
    ? v1alpha1Create(reply)
    : v1alpha2Bucket(reply, { requested: ['S3'], withId: dialect !== 'r4' });

const getMethod = (dialect: Dialect): string => (dialect === 'r1' ? 'DriverGetExistingBucket' : 'DriverGetBucket');
const getRequest = (
  dialect: Dialect,
  id: string,
  protocols: object[] = [{ type: 'S3' }],
  parameters: Record<string, string> = {},
): object => ({ [dialect === 'r1' ? 'existing_bucket_id' : 'bucket_id']: id, protocols, parameters });

export function existingBucketCases(context: Context): void {
  describe('DriverGetExistingBucket and DriverGetBucket', () => {
    it.each(context.v1alpha2)('%s: finds a registered bucket', async dialect => {
      const name = context.bucket();
      await context.target.control.registerBucket(name);
      const reply = await context.settle(dialect, getMethod(dialect), getRequest(dialect, name));
      expect(acceptedBy(dialect, reply)).toEqual([]);
      if (dialect !== 'r4') expect(reply.bucket_id).toBe(name);
      // Nobody here made it with any parameters.
      const asked = getRequest(dialect, name, [], { versioning: 'false' });
      await context.refuse(dialect, getMethod(dialect), asked, 'ALREADY_EXISTS', /parameters\[versioning\]/);
    });

    it.each(context.v1alpha2)('%s: finds a bucket of ours', async dialect => {
      const name = await context.madeBucket();
      const reply = await context.settle(dialect, getMethod(dialect), getRequest(dialect, name, []));
      expect(acceptedBy(dialect, reply)).toEqual([]);
    });

    it.each(context.v1alpha2)('%s: parameters are those that it was made with, or none', async dialect => {
      const made = await context.madeBucket({ versioning: 'true' });
      const get = (parameters: Record<string, string>) => getRequest(dialect, made, [], parameters);
      await context.settle(dialect, getMethod(dialect), get({ versioning: 'true', deletePolicy: 'retain' }));
      const other = get({ versioning: 'false' });
      await context.refuse(dialect, getMethod(dialect), other, 'ALREADY_EXISTS', differsIn(made));
      // Of a bucket that may still come, too: NOT_FOUND would be waited for.
      for (const id of [made, context.bucket()]) {
        const malformed = getRequest(dialect, id, [], { quotaMaxSize: 'lots' });
        const about = /^parameters\[quotaMaxSize\]: /;
        await context.refuse(dialect, getMethod(dialect), malformed, 'INVALID_ARGUMENT', about);
      }
    });

    it.each(context.v1alpha2)('%s: an absent or unregistered bucket is NOT_FOUND', async dialect => {
      const foreign = context.bucket();
      await context.target.control.makeForeignBucket(foreign);
      for (const id of [context.bucket(), foreign, 'Typed_by/an.Admin']) {
        await context.refuse(dialect, getMethod(dialect), getRequest(dialect, id), 'NOT_FOUND');
      }
    });

    it.each(context.v1alpha2)('%s: refuses ids and protocols that can never be', async dialect => {
      const field = dialect === 'r1' ? /^existing_bucket_id: / : /^bucket_id: /;
      for (const id of ['', 'a'.repeat(2049), 'a:b', 'ümlaut', 'a b']) {
        await context.refuse(dialect, getMethod(dialect), getRequest(dialect, id), 'INVALID_ARGUMENT', field);
      }
      const name = await context.madeBucket();
      for (const type of ['AZURE', 'GCS', 'UNKNOWN']) {
        const request = getRequest(dialect, name, [{ type: 'S3' }, { type }]);
        await context.refuse(dialect, getMethod(dialect), request, 'INVALID_ARGUMENT', /^protocols\[1\]: /);
      }
    });
  });
}

export function deleteBucketCases(context: Context): void {
  describe('DriverDeleteBucket', () => {
    it.each(context.dialects)('%s: deletes, and an absent bucket is OK', async dialect => {
      const name = await context.madeBucket();
      await context.settle(dialect, 'DriverDeleteBucket', { bucket_id: name });
      expect(await context.target.control.buckets()).not.toContain(name);
      await context.settle(dialect, 'DriverDeleteBucket', { bucket_id: name });
      await context.settle(dialect, 'DriverDeleteBucket', { bucket_id: context.bucket() });
      await context.settle(dialect, 'DriverDeleteBucket', { bucket_id: 'other:vendor=id' });
    });

    it('a name is free again', async () => {
      const name = await context.madeBucket({ versioning: 'true' });
      await context.settle('r1', 'DriverDeleteBucket', { bucket_id: name });
      await context.settle('r1', 'DriverCreateBucket', createRequest('r1', name, { versioning: 'false' }));
    });

    it('a bucket with objects is FAILED_PRECONDITION, whatever the call asks for', async () => {
      const name = await context.madeBucket();
      await context.target.control.putObject(name);
      const purge = { deletePolicy: 'purge' };
      const v1alpha1 = { bucket_id: name, delete_context: purge };
      await context.refuse('v1alpha1', 'DriverDeleteBucket', v1alpha1, 'FAILED_PRECONDITION', name);
      const v1alpha2 = { bucket_id: name, parameters: purge };
      await context.refuse('r1', 'DriverDeleteBucket', v1alpha2, 'FAILED_PRECONDITION', name);
      expect(await context.target.control.buckets()).toContain(name);
    });

    it('a bucket that was made to be purged goes with its objects', async () => {
      const name = await context.madeBucket({ deletePolicy: 'purge' });
      await context.target.control.putObject(name);
      await context.settle('r1', 'DriverDeleteBucket', { bucket_id: name });
      expect(await context.target.control.buckets()).not.toContain(name);
    });

    it('a registered bucket is never deleted', async () => {
      const name = context.bucket();
      await context.target.control.registerBucket(name);
      await context.settle('r1', 'DriverDeleteBucket', { bucket_id: name });
      expect(await context.target.control.buckets()).toContain(name);
    });

    it.each(context.dialects)('%s: an id that can never be is INVALID_ARGUMENT', async dialect => {
      for (const bucket_id of ['', 'a'.repeat(2049), 'a\u0000b']) {
        await context.refuse(dialect, 'DriverDeleteBucket', { bucket_id }, 'INVALID_ARGUMENT', /^bucket_id: /);
      }
    });
  });
}
