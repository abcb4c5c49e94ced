import { expect, it } from 'vitest';
import type { StoreTraits } from '#backends/object-backend';
import { Accesses } from '#storage/object/accesses/accesses';
import type { EndpointCaller } from '#storage/object/endpoint';
import type { ObjectDependencies } from '#storage/object/object-dependencies';

const caller = { tenantId: 't', backendId: 'b', endpoint: { backendKind: 'store' } } as EndpointCaller;

/** Whoever asks for more than its rows has gone too far. */
function accessesAt(traits: StoreTraits, rows: unknown[][]): Accesses {
  const tx = { query: async () => rows.shift() };
  const kind = {
    kind: 'store',
    protocols: ['azure'],
    traits,
    maxPolicyBytes: 5,
    policyUnit: 'stored access policies',
    policyBytes: (_: string, counts: Record<string, number>) => counts.read_write! + counts.read_only!,
  };
  return new Accesses({
    kindOf: () => kind,
    operations: { submit: (_: unknown, work: (tx: unknown) => unknown) => work(tx) },
  } as unknown as ObjectDependencies);
}

it('refuses an end of keys where they do not end by themselves, before anything is accepted', async () => {
  const granting = accessesAt({}, []).grant(caller, {
    name: 'ba',
    protocol: 'azure',
    buckets: [{ bucketId: 'photos', mode: 'read_only' }],
    expiry: { afterSeconds: 7_200 },
    fields: {
      protocol: 'protocol',
      authentication: 'service_account_name',
      buckets: 'buckets',
      modes: 'buckets',
      rotation: 'parameters[rotateAfter]',
      expiry: 'parameters[expiresAfter]',
    },
  });
  await expect(granting).rejects.toMatchObject({
    kind: 'invalid_argument',
    field: 'parameters[expiresAfter]',
    message: expect.stringContaining('do not end by themselves'),
  });
});

it('refuses a second signature where there is no room for it, and says what needs none', async () => {
  const access = {
    id: 'a',
    state: 'ready',
    desired: { buckets: [{ bucketId: 'photos', mode: 'read_only' }] },
  };
  const accesses = accessesAt({ signs: true }, [
    [access],
    [{ operation: null, formerUntil: null, backendKind: 'store' }],
    [{ id: 'b', name: 'photos', revoked: false }],
    [
      { bucketId: 'b', mode: 'read_only', n: 2 },
      { bucketId: 'b', mode: 'read_write', n: 3 },
    ],
  ]);
  await expect(accesses.rotate(caller, 'account', 60)).rejects.toMatchObject({
    kind: 'resource_exhausted',
    message: expect.stringContaining(
      '6 stored access policies of 5: revoke an access, or change this one with no grace',
    ),
  });
});
