import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Grant } from '#backends/object-backend';
import { grantsOf, MAX_UID_LENGTH, mergePolicy, policyBytes, samePolicy } from '#backends/s3/bucket-policy';

const scope = { bucket: 'photos', tenant: '' };
type Document = { Version: string; Statement: Record<string, unknown>[] };
const parse = (policy: string | undefined) => JSON.parse(policy!) as Document;
const byUid = (a: Grant, b: Grant) => (a.uid < b.uid ? -1 : 1);

const mode = fc.constantFrom<Grant['mode']>('read_write', 'read_only', 'write_only', 'revoked');
const uid = fc.stringMatching(new RegExp(`^[a-z0-9-]{1,${MAX_UID_LENGTH}}$`));
const grants = fc.uniqueArray(fc.record({ uid, mode }), { selector: grant => grant.uid, maxLength: 30 });

describe('our part of a bucket policy', () => {
  it('pairs every Allow with a Deny by Action for the same principals', () => {
    const policy = mergePolicy(undefined, scope, [
      { uid: 'a', mode: 'read_write' },
      { uid: 'b', mode: 'read_only' },
      { uid: 'c', mode: 'write_only' },
    ]);
    const { Statement } = parse(policy);
    expect(Statement.map(statement => [statement.Sid, statement.Effect])).toEqual([
      ['trivetReadWriteAllow', 'Allow'],
      ['trivetReadWriteDeny', 'Deny'],
      ['trivetReadOnlyAllow', 'Allow'],
      ['trivetReadOnlyDeny', 'Deny'],
      ['trivetWriteOnlyAllow', 'Allow'],
      ['trivetWriteOnlyDeny', 'Deny'],
    ]);
    for (const [allow, deny] of [Statement.slice(0, 2), Statement.slice(2, 4), Statement.slice(4, 6)])
      expect(allow!.Principal).toEqual(deny!.Principal);
    expect(JSON.stringify(Statement)).not.toContain('NotAction');
  });

  it('denies a revoked principal everything', () => {
    expect(parse(mergePolicy(undefined, scope, [{ uid: 'a', mode: 'revoked' }])).Statement).toEqual([
      {
        Sid: 'trivetRevokedDeny',
        Effect: 'Deny',
        Principal: { AWS: ['arn:aws:iam:::user/a'] },
        Action: ['s3:*'],
        Resource: ['arn:aws:s3:::photos', 'arn:aws:s3:::photos/*'],
      },
    ]);
  });

  it('names the RGW tenant in users and bucket', () => {
    const policy = mergePolicy(undefined, { bucket: 'bk', tenant: 't1' }, [{ uid: 'g', mode: 'read_only' }]);
    expect(parse(policy).Statement[0]).toMatchObject({
      Principal: { AWS: ['arn:aws:iam::t1:user/g'] },
      Resource: ['arn:aws:s3::t1:bk', 'arn:aws:s3::t1:bk/*'],
    });
  });

  it('says the same whatever the order of the grants, and reads back what it says', () => {
    fc.assert(
      fc.property(grants, given => {
        const policy = mergePolicy(undefined, scope, given);
        expect(mergePolicy(undefined, scope, given.toReversed())).toBe(policy);
        expect(grantsOf(policy).sort(byUid)).toEqual(given.toSorted(byUid));
        if (policy !== undefined) expect(mergePolicy(policy, scope, given)).toBe(policy);
      }),
    );
  });

  it('replaces ours and nothing else', () => {
    fc.assert(
      fc.property(grants, grants, (before, after) => {
        const others = [{ Sid: 'theirs', Effect: 'Allow' }, { Effect: 'Deny' }, { Sid: 'nottrivet' }];
        const foreign = JSON.stringify({ Version: '2008-10-17', Id: 'kept', Statement: others });
        const merged = mergePolicy(mergePolicy(foreign, scope, before), scope, after);
        expect(parse(merged)).toMatchObject({ Version: '2008-10-17', Id: 'kept' });
        expect(parse(merged).Statement.slice(0, 3)).toEqual(others);
        expect(grantsOf(merged).sort(byUid)).toEqual(after.toSorted(byUid));
      }),
    );
  });

  it('is no policy at all when nothing is left', () => {
    expect(mergePolicy(mergePolicy(undefined, scope, [{ uid: 'a', mode: 'read_only' }]), scope, [])).toBeUndefined();
  });

  it('accepts a single statement without a list', () => {
    const policy = JSON.stringify({ Version: '2012-10-17', Statement: { Sid: 'theirs', Effect: 'Allow' } });
    expect(parse(mergePolicy(policy, scope, [])).Statement).toEqual([{ Sid: 'theirs', Effect: 'Allow' }]);
  });

  it.each(['{', 'null', '[]', '{}', '{"Statement":["a"]}', '{"Statement":null}', '"text"'])(
    'stops at a policy that it cannot read: %s',
    policy => {
      expect(() => mergePolicy(policy, scope, [])).toThrow(expect.objectContaining({ kind: 'failed_precondition' }));
    },
  );

  it('computes a size that no real policy exceeds, and that is not far above the longest', () => {
    fc.assert(
      fc.property(grants, given => {
        const counts = { read_write: 0, read_only: 0, write_only: 0, revoked: 0 };
        for (const grant of given) counts[grant.mode] += 1;
        const policy = mergePolicy(undefined, scope, given) ?? '';
        expect(Buffer.byteLength(policy)).toBeLessThanOrEqual(policyBytes(scope.bucket, counts));
      }),
    );
    const longest = Array.from({ length: 100 }, (_, n) => ({
      uid: String(n).padStart(64, '0'),
      mode: 'read_write' as const,
    }));
    const counts = { read_write: 100, read_only: 0, write_only: 0, revoked: 0 };
    const real = mergePolicy(undefined, { bucket: 'photos', tenant: 't'.repeat(64) }, longest)!;
    expect(policyBytes('photos', counts)).toBe(real.length);
  });

  it('compares policies by what they say', () => {
    expect(samePolicy('{"a": 1}', '{"a":1}')).toBe(true);
    expect(samePolicy('{"a":1}', '{"a":2}')).toBe(false);
    expect(samePolicy(undefined, undefined)).toBe(true);
    expect(samePolicy(undefined, '{}')).toBe(false);
  });
});
