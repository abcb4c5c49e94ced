import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseS3BucketParameters } from '#backends/s3/bucket-parameters';

const DEFAULTS = { versioning: false, objectLock: false, tags: {}, deletePolicy: 'retain' };

describe('parameters of a bucket', () => {
  it('gives the defaults for none', () => expect(parseS3BucketParameters({})).toEqual(DEFAULTS));

  it('reads every one', () => {
    expect(
      parseS3BucketParameters({
        region: 'default',
        placement: 'fast-ssd',
        quotaMaxSize: '10Gi',
        quotaMaxObjects: '1000',
        versioning: 'true',
        objectLock: 'true',
        tags: 'team=storage,cost=a=b',
        deletePolicy: 'purge',
      }),
    ).toEqual({
      region: 'default',
      placement: 'fast-ssd',
      quotaMaxSize: '10737418240',
      quotaMaxObjects: '1000',
      versioning: true,
      objectLock: true,
      tags: { cost: 'a=b', team: 'storage' },
      deletePolicy: 'purge',
    });
  });

  it('spells equal requests equally', () => {
    const a = parseS3BucketParameters({ tags: 'a=1, b=2', quotaMaxSize: '1Ki', versioning: 'false' });
    const b = parseS3BucketParameters({ quotaMaxSize: '1024', tags: 'b=2,a=1', deletePolicy: 'retain' });
    expect(JSON.stringify(a)).toBe(JSON.stringify(b));
  });

  it('lets object lock imply versioning, and not contradict it', () => {
    expect(parseS3BucketParameters({ objectLock: 'true' })).toMatchObject({ versioning: true, objectLock: true });
    expect(() => parseS3BucketParameters({ objectLock: 'true', versioning: 'false' })).toThrow(
      expect.objectContaining({ kind: 'invalid_argument', field: 'parameters[versioning]' }),
    );
  });

  it('reads sizes to the last byte of 63 bits', () => {
    expect(parseS3BucketParameters({ quotaMaxSize: '9223372036854775807' }).quotaMaxSize).toBe('9223372036854775807');
    expect(parseS3BucketParameters({ quotaMaxSize: '7Ei' }).quotaMaxSize).toBe('8070450532247928832');
  });

  it.each([
    ['nonsense', '1'],
    ['constructor', '1'],
    ['__proto__', '1'],
    ['Versioning', 'true'],
    ['versioning', 'yes'],
    ['versioning', 'True'],
    ['versioning', ''],
    ['objectLock', '1'],
    ['quotaMaxSize', '0'],
    ['quotaMaxSize', '-1'],
    ['quotaMaxSize', '1.5Gi'],
    ['quotaMaxSize', '10GB'],
    ['quotaMaxSize', '10 Gi'],
    ['quotaMaxSize', '8Ei'],
    ['quotaMaxSize', '9223372036854775808'],
    ['quotaMaxSize', ''],
    ['quotaMaxObjects', '0'],
    ['quotaMaxObjects', '1e6'],
    ['quotaMaxObjects', '01'],
    ['deletePolicy', 'delete'],
    ['deletePolicy', ''],
    ['region', 'a:b'],
    ['region', ''],
    ['placement', 'a/b'],
    ['tags', 'novalue'],
    ['tags', '=value'],
    ['tags', 'a=1,a=2'],
    ['tags', 'a=1,'],
    ['tags', 'trivet-incarnation=x'],
    ['tags', 'Trivet=x'],
    ['tags', 'aws:x=y'],
    ['tags', 'a=<b>'],
    ['tags', `${'k'.repeat(129)}=v`],
    ['tags', `k=${'v'.repeat(257)}`],
    ['tags', Array.from({ length: 49 }, (_, n) => `k${n}=v`).join(',')],
  ])('refuses %s = %j and names it', (key, value) => {
    const parameters = Object.fromEntries([[key, value]]);
    expect(() => parseS3BucketParameters(parameters)).toThrow(
      expect.objectContaining({ kind: 'invalid_argument', field: `parameters[${key}]` }),
    );
  });

  it('keeps every legal set of tags', () => {
    const part = fc.stringMatching(/^[a-z0-9_.:/+@ü-]{1,20}$/).filter(text => !/^(trivet|aws:)/.test(text));
    fc.assert(
      fc.property(fc.dictionary(part, part, { maxKeys: 48 }), tags => {
        const text = Object.entries(tags)
          .map(([key, value]) => `${key}=${value}`)
          .join(',');
        expect(parseS3BucketParameters({ tags: text }).tags).toEqual({ ...tags });
      }),
    );
  });
});
