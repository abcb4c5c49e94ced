import { describe, expect, it } from 'vitest';
import { garageKind } from '#backends/garage/garage-kind';

const place = { adminEndpoint: 'http://garage:3903/', endpoint: 'http://garage:3900' };

describe('the kind garage', () => {
  it('takes quotas that the admin API can be told, and nothing that Garage has not', () => {
    const parse = (parameters: Record<string, string>) => garageKind.parseBucketParameters(parameters);
    expect(parse({ quotaMaxSize: '8191Ti', quotaMaxObjects: '7', deletePolicy: 'purge' })).toEqual({
      versioning: false,
      objectLock: false,
      quotaMaxSize: `${8191n * 1024n ** 4n}`,
      quotaMaxObjects: '7',
      tags: {},
      deletePolicy: 'purge',
    });
    for (const [key, value, words] of [
      ['quotaMaxSize', '8Pi', 'at most 9007199254740991'],
      ['quotaMaxObjects', '9007199254740992', 'at most'],
      ['versioning', 'false', 'keeps no versions'],
      ['objectLock', 'true', 'no object lock'],
      ['tags', 'a=1', 'no tags'],
      ['placement', 'fast', 'layout'],
      ['colour', 'red', 'known are region, quotaMaxSize, quotaMaxObjects, deletePolicy'],
    ] as const)
      expect(() => parse({ [key]: value }), key).toThrow(
        expect.objectContaining({ kind: 'invalid_argument', message: expect.stringContaining(words) }),
      );
  });

  it('tells users where S3 is for them', () => {
    expect(garageKind.accessPoint(garageKind.parseConfig(place))).toEqual({
      endpoint: 'http://garage:3900',
      region: 'garage',
      addressing: 'path',
    });
    const config = garageKind.parseConfig({ ...place, publicEndpoint: 'https://s3.example.net', region: 'here' });
    expect(garageKind.accessPoint(config)).toMatchObject({ endpoint: 'https://s3.example.net', region: 'here' });
    expect(garageKind.registration.addresses(config)).toEqual({
      adminEndpoint: 'http://garage:3903',
      endpoint: 'http://garage:3900',
    });
  });

  it('takes keys as Garage writes them, and tells none of what it was given', () => {
    const right = { adminToken: 'token', accessKeyId: `GK${'0a'.repeat(12)}`, secretAccessKey: '0f'.repeat(32) };
    const { credentials } = garageKind.registration;
    expect(credentials.safeParse(right).success).toBe(true);
    for (const wrong of [{ accessKeyId: 'AKIA' }, { secretAccessKey: 'short' }, { adminToken: '' }, { further: 'x' }])
      expect(credentials.safeParse({ ...right, ...wrong }).success).toBe(false);
    const owner = { applianceId: 'a', tenantId: 't' };
    const open = () => garageKind.open(garageKind.parseConfig(place), { ...right, secretAccessKey: 'hush' }, owner);
    expect(open).toThrow(/expected adminToken, accessKeyId and secretAccessKey/);
    expect(open).not.toThrow(/hush/);
  });
});
