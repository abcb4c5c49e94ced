import { describe, expect, it } from 'vitest';
import { azureConfig } from '#backends/azure/azure-config';
import { azureKind } from '#backends/azure/azure-kind';

const owner = { applianceId: 'a', tenantId: 't' };
const config = { account: 'shopfloor', endpoint: 'https://shopfloor.blob.core.windows.net/' };
const accountKey = Buffer.alloc(64, 7).toString('base64');
const open = (extra: object = {}) =>
  azureKind.open(azureKind.parseConfig({ ...config, ...extra }), { accountKey }, owner);

describe('the kind azure', () => {
  it.each(['photos', 'a-1', '007', 'x'.repeat(63)])('takes the name %s', name => {
    expect(() => azureKind.checkBucketName(name, 'name')).not.toThrow();
  });

  it.each(['', 'ab', 'Photos', 'a.b', 'a--b', '-ab', 'ab-', 'a_b', 'x'.repeat(64)])('refuses the name %j', name => {
    expect(() => azureKind.checkBucketName(name, 'name')).toThrow();
  });

  it('takes tags that can be metadata, and what becomes of the content', () => {
    expect(azureKind.parseBucketParameters({ tags: 'team=blue,cost_centre=7', deletePolicy: 'purge' })).toEqual({
      versioning: false,
      objectLock: false,
      tags: { cost_centre: '7', team: 'blue' },
      deletePolicy: 'purge',
    });
  });

  it.each([
    ['tags', 'Team=blue', /lower-case/],
    ['tags', '7=x', /digit first/],
    ['tags', 'a-b=x', /metadata/],
    ['tags', 'team=é', /ASCII/],
    ['tags', 'team=', /ASCII/],
    ['tags', 'trivet_incarnation=x', /reserved/],
    ['versioning', 'true', /account decides/],
    ['objectLock', 'true', /administrator/],
    ['quotaMaxSize', '1Gi', /no quota/],
    ['region', 'eu', /account decides/],
    ['colour', 'red', /unknown parameter/],
    ['deletePolicy', 'burn', /retain or purge/],
  ])('refuses %s=%s', (key, value, words) => {
    expect(() => azureKind.parseBucketParameters({ [key]: value })).toThrow(words);
  });

  it('refuses Entra ID by its name, and an endpoint that carries a signature', () => {
    const said = (extra: object) => azureConfig.safeParse({ ...config, ...extra }).error?.message ?? '';
    expect(said({ authentication: 'entraId' })).toContain('Entra ID');
    expect(said({ endpoint: 'https://x.blob.core.windows.net/?sig=abc' })).toContain('without a query');
    expect(said({})).toBe('');
  });

  it('counts the accesses of a container', () => {
    const counts = { read_write: 2, read_only: 2, write_only: 1, revoked: 9 };
    expect(azureKind.policyBytes('photos', counts)).toBe(azureKind.maxPolicyBytes);
  });

  it('signs for the address that users have, by https alone where that is https, and without the key', () => {
    const token = open({ publicEndpoint: 'https://files.example.net' }).signAccess('photos', 'trivet-1')!;
    const { origin, pathname, searchParams } = new URL(token);
    expect(`${origin}${pathname}`).toBe('https://files.example.net/photos');
    expect(Object.fromEntries([...searchParams].filter(([key]) => key !== 'sig'))).toEqual({
      sv: '2022-11-02',
      spr: 'https',
      si: 'trivet-1',
      sr: 'c',
    });
    expect(token).not.toContain(accountKey);
    expect(open().signAccess('photos', 'trivet-1')).toContain(
      `sig=${new URLSearchParams({ s: searchParams.get('sig')! }).toString().slice(2)}`,
    );
  });

  it('cannot be shared', () => {
    const share = { applianceId: 'a', ownerId: 'o', tenant: { id: 't', name: 'acme' }, others: [] };
    expect(() => azureKind.registration.share(azureKind.parseConfig(config), share)).toThrow(/storage account/);
  });
});

it('signs, and sees changes late', () => {
  expect(azureKind.traits).toEqual({ signs: true, late: true });
});
