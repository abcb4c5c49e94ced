import type { BulkActions } from './choosing';

/** What may be done to many, list by list. */
export const ofVolumes = (tenant: string): BulkActions => ({
  tenant,
  noun: ['volume', 'volumes'],
  totals: '/tenants/{tenant}/totals/volumes',
  actions: [
    {
      starts: '/tenants/{tenant}/bulk/delete-volumes',
      label: 'Delete',
      explain:
        'They go into the recycle bin, unless they were made otherwise. Those that are published, or have snapshots, stay.',
      danger: true,
      role: 'admin',
      reason: 'optional',
    },
  ],
});

export const ofSnapshots = (tenant: string): BulkActions => ({
  tenant,
  noun: ['snapshot', 'snapshots'],
  totals: '/tenants/{tenant}/totals/snapshots',
  actions: [
    {
      starts: '/tenants/{tenant}/bulk/delete-snapshots',
      label: 'Delete',
      explain: 'What they hold of their own is gone then. Those that have a clone stay.',
      danger: true,
      role: 'admin',
      reason: 'optional',
    },
  ],
});

export const ofBuckets = (tenant: string): BulkActions => ({
  tenant,
  noun: ['bucket', 'buckets'],
  totals: '/tenants/{tenant}/totals/buckets',
  actions: [
    {
      starts: '/tenants/{tenant}/bulk/delete-buckets',
      label: 'Delete',
      explain: 'The deletePolicy of each decides whether its objects go with it; registered ones are only let go.',
      danger: true,
      role: 'admin',
      reason: 'optional',
    },
  ],
});

export const ofPublications = (tenant: string): BulkActions => ({
  tenant,
  noun: ['publication', 'publications'],
  totals: '/tenants/{tenant}/totals/publications',
  actions: [
    {
      starts: '/tenants/{tenant}/bulk/unpublish',
      label: 'Unpublish',
      explain: "The hosts' sessions end at once; what they have not written yet is lost.",
      danger: true,
      role: 'admin',
      reason: 'optional',
    },
  ],
});

export const ofOperations = (tenant: string): BulkActions => ({
  tenant,
  noun: ['operation', 'operations'],
  totals: '/tenants/{tenant}/totals/operations',
  counts: { exact: 'true' },
  actions: [
    {
      starts: '/tenants/{tenant}/bulk/retry-operations',
      label: 'Retry',
      explain: 'Each that waits for its next attempt, or for a person, is tried again now.',
      role: 'operator',
      reason: 'optional',
    },
    {
      starts: '/tenants/{tenant}/bulk/cancel-operations',
      label: 'Cancel',
      explain: 'Each stops between two steps and undoes what it did; what cannot be undone goes on.',
      role: 'operator',
      reason: 'required',
    },
  ],
});
