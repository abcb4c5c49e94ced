import { describe, expect, it } from 'vitest';
import type { AccessAtBackend } from '#storage/object/accesses/access-at-backend';
import { isSigned, known, takeNames } from '#storage/object/accesses/signatures';

const key = (name: string) => ({ accessKeyId: name, secretAccessKey: '', signedAs: `trivet-${name}` });
const work = (more: Partial<AccessAtBackend>): AccessAtBackend => ({
  uid: 'trivet-a',
  credentials: undefined,
  name: 'a',
  desired: { protocol: 'AZURE', buckets: [] } as unknown as AccessAtBackend['desired'],
  formerHolds: false,
  policies: [],
  ...more,
});

describe('what opens the buckets of an access', () => {
  it('is its former key, too, while the time of that is not over, and none that has ended', () => {
    const both = { credentials: key('present'), former: key('former') };
    const names = (of: AccessAtBackend) => takeNames(of, known(of));
    expect(names(work({ ...both, formerHolds: true }))).toEqual(['trivet-present', 'trivet-former']);
    expect(names(work(both))).toEqual(['trivet-present']);
  });

  it('is the account before its first change', () => {
    const first = { accessKeyId: 'k', secretAccessKey: '', token: 'https://…' };
    expect(takeNames(work({ credentials: first }), [first])).toEqual(['trivet-a']);
  });

  it('has names after a change without a bucket, which has no signature', () => {
    expect(isSigned(work({ credentials: key('present') }))).toBe(true);
    expect(isSigned(work({ credentials: { accessKeyId: 'k', secretAccessKey: 's' } }))).toBe(false);
  });
});
