import { bucketRoutes } from '#admin/contract/buckets';
import { showOne } from '../api/output.js';
import { noun, one, text } from '../command-line/command.js';
import { listing, ofTenant } from './api-commands.js';

export const BUCKET = noun('bucket', 'buckets of a tenant', [
  listing('what Trivet made or was given', '--tenant acme', {
    route: bucketRoutes.list,
    most: 1_000,
    filters: { backend: text('name', 'only those there') },
    none: 'no buckets yet: a COSI client makes them',
    columns: {
      NAME: row => row.name,
      ORIGIN: row => row.origin,
      STATE: row => row.state,
      BACKEND: row => row.backend,
      CREATED: row => row.createdAt,
      CONDITION: row => row.condition?.message ?? '',
    },
  }),
  ofTenant(
    'import',
    'let a tenant use a bucket that exists already; Trivet will never delete or change it',
    'photos --tenant acme',
    {
      args: { name: one('its name at the object store') },
      options: { backend: text('name', 'where it is; needed only where that is not clear') },
      run: async ({ name, backend, json }, api, tenant) => {
        const { reply } = await api.call(bucketRoutes.register, { params: { tenant }, body: { name, backend } });
        showOne(reply, json, () => `${reply.name} is registered`);
      },
    },
  ),
]);
