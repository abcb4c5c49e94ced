import { expect, it } from 'vitest';
import { Accesses } from '#storage/object/accesses/accesses';
import type { EndpointCaller } from '#storage/object/endpoint';
import type { ObjectDependencies } from '#storage/object/object-dependencies';

/** A store that has no second key. Whoever asks for more than its rows has gone too far. */
const rows = [[{ id: 'a', state: 'ready' }], [{ operation: null, formerUntil: null, backendKind: 'azure' }]];
const tx = { query: async () => rows.shift() };
const accesses = new Accesses({
  kindOf: () => ({ kind: 'azure', protocols: ['azure'], traits: { oneKey: true } }),
  operations: { submit: (_: unknown, work: (tx: unknown) => unknown) => work(tx) },
} as unknown as ObjectDependencies);
const caller = { tenantId: 't', backendId: 'b', endpoint: { backendKind: 'azure' } } as EndpointCaller;

it('refuses a rotation by age where there is no second key, before anything is accepted', async () => {
  const granting = accesses.grant(caller, {
    name: 'ba',
    protocol: 'azure',
    buckets: [{ bucketId: 'photos', mode: 'read_only' }],
    rotation: { afterSeconds: 7_200, graceSeconds: 3_600 },
    fields: { protocol: 'protocol', buckets: 'buckets', modes: 'buckets', rotation: 'parameters[rotateAfter]' },
  });
  await expect(granting).rejects.toMatchObject({
    kind: 'invalid_argument',
    field: 'parameters[rotateAfter]',
    message: expect.stringContaining('one key for an access'),
  });
});

it('refuses a rotation there, and says what to do instead', async () => {
  await expect(accesses.rotate(caller, 'account', 60)).rejects.toMatchObject({
    kind: 'unimplemented',
    message: expect.stringContaining('revoke account account and grant it again'),
  });
});
