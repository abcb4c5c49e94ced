import { z } from 'zod';
import { bucket, bucketRoutes } from '#admin/contract/buckets';
import { pageOf, tenantName } from '#admin/contract/common';
import { host, hostRoutes } from '#admin/contract/hosts';
import { route } from '#admin/contract/route';
import { snapshot, snapshotRoutes } from '#admin/contract/snapshots';
import { volume, volumeRoutes } from '#admin/contract/volumes';

const access = { scope: 'appliance', role: 'viewer' } as const;
const tenant = tenantName.meta({ id: 'OfTenant', description: 'Name of the tenant whose it is' });
const ofOne = tenantName.optional().meta({ description: 'Only those of one tenant' });
const ofSnapshots = z
  .enum(['cut', '-cut', 'createdAt', '-createdAt'])
  .default('-createdAt')
  .meta({ description: 'cut: with `volume` only' });
const description = 'Filters, order and pages are those of the list of one tenant.';

/** Lists of what all tenants have, each item with its tenant: for administrators of the appliance. */
export const allTenantsRoutes = {
  volumes: route({
    id: 'listVolumesOfAll',
    method: 'GET',
    path: '/volumes',
    tag: 'volumes',
    summary: 'Volumes of all tenants; state=binned for their recycle bins',
    description,
    access,
    query: volumeRoutes.list.query.extend({ tenant: ofOne }),
    status: 200,
    reply: pageOf(volume.extend({ tenant }).meta({ id: 'VolumeOfTenant' })),
    examples: [{ name: 'all' }, { name: 'largest first', query: { sort: '-size' } }],
  }),
  snapshots: route({
    id: 'listSnapshotsOfAll',
    method: 'GET',
    path: '/snapshots',
    tag: 'snapshots',
    summary: 'Snapshots of all tenants',
    description,
    access,
    query: snapshotRoutes.list.query.extend({ tenant: ofOne, sort: ofSnapshots }),
    status: 200,
    reply: pageOf(snapshot.extend({ tenant }).meta({ id: 'SnapshotOfTenant' })),
    examples: [{ name: 'newest first' }],
  }),
  buckets: route({
    id: 'listBucketsOfAll',
    method: 'GET',
    path: '/buckets',
    tag: 'buckets',
    summary: 'Buckets of all tenants',
    description,
    access,
    query: bucketRoutes.list.query.extend({ tenant: ofOne }),
    status: 200,
    reply: pageOf(bucket.extend({ tenant }).meta({ id: 'BucketOfTenant' })),
    examples: [{ name: 'all' }],
  }),
  hosts: route({
    id: 'listHostsOfAll',
    method: 'GET',
    path: '/hosts',
    tag: 'hosts',
    summary: 'Hosts of all tenants',
    description,
    access,
    query: hostRoutes.list.query.extend({ tenant: ofOne }),
    status: 200,
    reply: pageOf(host.extend({ tenant }).meta({ id: 'HostOfTenant' })),
    examples: [{ name: 'all' }],
  }),
};
