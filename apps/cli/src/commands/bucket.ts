import { allTenantsRoutes } from '#admin/contract/all-tenants';
import { bucketRoutes } from '#admin/contract/buckets';
import type { ReplyOf } from '#admin/contract/route';
import type { ApiClient } from '../api/api-client.js';
import { idOf } from '../api/by-name.js';
import { confirm } from '../api/confirm.js';
import { operationIn, PATIENCE_S, saidOf } from '../api/goes-on.js';
import { facts, showOne } from '../api/output.js';
import { noun, one, parsed, repeated, text } from '../command-line/command.js';
import { humanBytes } from '../human-bytes.js';
import { listing, ofTenant } from './api-commands.js';
import { collectSetting, YES } from './options.js';
import { removeOne } from './remove-one.js';

type Bucket = ReplyOf<typeof bucketRoutes.get>;

const bucket = one('its name or id');

export const BUCKET = noun('bucket', 'buckets of a tenant', [
  listing('what Trivet made or was given', '--tenant acme', {
    route: bucketRoutes.list,
    ofAll: allTenantsRoutes.buckets,
    most: 1_000,
    filters: { backend: text('name', 'only those there') },
    none: 'no buckets yet: trivet bucket create NAME, or a COSI client makes them',
    columns: {
      NAME: row => row.name,
      ORIGIN: row => row.origin,
      STATE: row => row.state,
      BACKEND: row => row.backend,
      CREATED: row => row.createdAt,
      CONDITION: row => row.condition?.message ?? '',
    },
  }),
  ofTenant('show', 'one of them', 'photos --tenant acme', {
    args: { bucket },
    run: async ({ bucket: given, json }, api, tenant) => {
      const params = { tenant, bucket: await findBucket(api, tenant, given) };
      const { reply } = await api.call(bucketRoutes.get, { params });
      showOne(reply, json, () => describe(reply));
    },
  }),
  ofTenant('create', 'make one, as a BucketClaim of a cluster does', 'photos --set versioning=true --tenant acme', {
    args: { name: one('its name, at the object store as well') },
    options: {
      backend: text('name', 'where; needed only where that is not clear'),
      set: repeated(parsed('key=value', 'a parameter, as a bucket class has it; again for each', collectSetting)),
    },
    run: async ({ name, backend, set: parameters, json }, api, tenant) => {
      const body = { name, backend, ...(parameters && { parameters }) };
      const answer = await api.call(bucketRoutes.create, { params: { tenant }, body, waitSeconds: PATIENCE_S });
      const made = `${answer.reply.name} (${answer.reply.id}) is`;
      showOne(answer.reply, json, () => saidOf(operationIn(answer), `${made} made`, `${made} being made`));
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
  ofTenant(
    'delete',
    'as its deletePolicy says, with its objects or only without; a registered one is let go, and stays',
    'photos --tenant acme --yes',
    {
      args: { bucket },
      options: { yes: YES },
      run: async ({ bucket: given, yes, json }, api, tenant) => {
        const params = { tenant, bucket: await findBucket(api, tenant, given) };
        await removeOne(api, bucketRoutes, params, { before: found => confirm(lossOf(found), yes), json });
      },
    },
  ),
]);

/** Stores may have a bucket of one name each. */
export const findBucket = (api: ApiClient, tenant: string, given: string): Promise<string> =>
  idOf(api, tenant, bucketRoutes.list, given, { noun: 'bucket', where: ({ backend }) => `at ${backend}` });

const lossOf = ({ name, id, origin, backend, accesses }: Bucket): string =>
  origin === 'registered'
    ? `bucket ${name} (${id}) is let go, and stays at ${backend}`
    : `bucket ${name} (${id}) at ${backend}, which ${accesses} accesses reach, is deleted for good`;

const describe = (reply: Bucket): string =>
  facts([
    ['name', reply.name],
    ['id', reply.id],
    ['origin', reply.origin],
    ['state', reply.state],
    ['condition', reply.condition?.message],
    ['backend', reply.backend],
    ['accesses', String(reply.accesses)],
    ['used', reply.usedBytes === null ? 'not counted yet' : humanBytes(reply.usedBytes)],
    ...Object.entries(reply.parameters).map(
      ([key, value], at) => [at === 0 ? 'parameters' : '', `${key}=${value}`] as const,
    ),
    ['operation', reply.operation],
    ['made', reply.createdAt],
    ['changed', reply.updatedAt],
  ]);
