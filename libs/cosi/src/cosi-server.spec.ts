import { describe, expect, it } from 'vitest';
import { COSI_SERVICES } from '#cosi/cosi-protos';
import { CosiServer } from '#cosi/cosi-server';
import type { Endpoint } from '#storage/object/endpoint';

const server = () => new CosiServer({ graceMs: 100, waitMs: 25_000 });
const handler = async () => ({});

describe('CosiServer', () => {
  it('takes no handler by a short service name', () => {
    expect(() => server().addHandler({ service: 'Provisioner', rpc: 'DriverCreateBucket' }, handler)).toThrow(
      'gRPC handler Provisioner/DriverCreateBucket has no full service name',
    );
  });

  it('leaves the handlers of other libraries alone, and opens nothing while one of its own is missing', async () => {
    const strategy = server();
    strategy.addHandler({ service: 'csi.v1.Identity', rpc: 'Probe' }, handler);
    strategy.listen(() => {});
    await expect(strategy.open({ id: 'e' } as Endpoint, { path: '/nowhere/cosi.sock' })).rejects.toThrow(
      'no handler for cosi.v1alpha1.Identity/DriverGetInfo',
    );
  });

  it('opens nothing before the application listens', async () => {
    await expect(server().open({ id: 'e' } as Endpoint, { path: '/nowhere/cosi.sock' })).rejects.toThrow('after');
  });

  it('knows the services of both packages, with the methods of every revision', () => {
    const methods = [...COSI_SERVICES].map(([name, methods]) => [name, Object.keys(methods).sort()]);
    const shared = ['DriverCreateBucket', 'DriverDeleteBucket'];
    const access = ['DriverGrantBucketAccess', 'DriverRevokeBucketAccess'];
    const v1alpha2 = ['DriverGenerateBucketId', 'DriverGetBucket', 'DriverGetExistingBucket'];
    expect(methods).toEqual([
      ['cosi.v1alpha1.Identity', ['DriverGetInfo']],
      ['cosi.v1alpha1.Provisioner', [...shared, ...access]],
      ['sigs.k8s.io.cosi.v1alpha2.Identity', ['DriverGetInfo']],
      ['sigs.k8s.io.cosi.v1alpha2.Provisioner', [...shared, ...v1alpha2, ...access].sort()],
    ]);
  });
});
