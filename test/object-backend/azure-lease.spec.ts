import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { azureKind } from '#backends/azure/azure-kind';
import { unleased } from '#platform/lease-signal';
import { type AzureHarness, azureParts, openAzureHarness } from '#test/object-backend/azure-harness';

const parts = azureParts();
const spec = azureKind.parseBucketParameters({});
const tagged = azureKind.parseBucketParameters({ tags: 'team=blue' });
const soon = () => unleased(AbortSignal.timeout(60_000));
/** Nobody has noticed yet, as in a process that stood still. */
const over = () => unleased(new AbortController().signal, 0);

describe.skipIf(!parts)('a lease that is over', () => {
  let store: AzureHarness;
  beforeAll(async () => {
    store = await openAzureHarness(parts!);
  });
  afterAll(() => store?.close());

  it('lets no request through that changes something', async () => {
    const { backend, prefix } = store;
    const ref = { name: `${prefix}lease`, incarnation: randomUUID() };
    await expect(backend.createBucket(ref, spec, over())).rejects.toThrow();
    expect(await backend.inspectBucket(ref.name, soon())).toEqual({ state: 'absent' });

    await backend.createBucket(ref, spec, soon());
    await expect(backend.deleteBucket(ref, over())).rejects.toThrow();
    await expect(backend.configureBucket(ref, tagged, over())).rejects.toThrow();
    await expect(backend.putGrants(ref, [{ uid: 'trivet-1', mode: 'read_only' }], over())).rejects.toThrow();
    await store.seedObjects(ref.name, 1);
    await expect(backend.emptyBucket(ref, over())).rejects.toThrow();
    expect((await store.bucketSpec(ref.name)).tags).toEqual({});
    expect(await store.grants(ref.name)).toEqual([]);
    expect(await backend.deleteBucket(ref, soon())).toBe('not_empty');
  });

  it('leaves what others wrote into the list of policies, and counts it', async () => {
    const { backend, prefix, service } = store;
    const ref = { name: `${prefix}others`, incarnation: randomUUID() };
    await backend.createBucket(ref, spec, soon());
    const others = [1, 2, 3].map(n => ({
      id: `theirs-${n}`,
      accessPolicy: { permissions: 'r', expiresOn: new Date('2030-01-01T00:00:00Z') },
    }));
    const container = service.getContainerClient(ref.name);
    await container.setAccessPolicy('blob', others as never);
    const [a, b, c] = ['a', 'b', 'c'].map(name => ({ uid: `trivet-${name}`, mode: 'read_write' as const }));
    await backend.putGrants(ref, [a!, b!], soon());
    await expect(backend.putGrants(ref, [a!, b!, c!], soon())).rejects.toMatchObject({ kind: 'resource_exhausted' });
    await backend.putGrants(ref, [b!], soon());
    const { signedIdentifiers, blobPublicAccess } = await container.getAccessPolicy();
    expect(blobPublicAccess).toBe('blob');
    expect(signedIdentifiers.map(({ id }) => id).sort()).toEqual(['theirs-1', 'theirs-2', 'theirs-3', 'trivet-b']);
    expect(await store.grants(ref.name)).toEqual([b]);
    expect(signedIdentifiers.find(({ id }) => id === 'theirs-1')!.accessPolicy).toMatchObject(others[0]!.accessPolicy);
  });
});
