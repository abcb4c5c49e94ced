import { z } from 'zod';
import { bucketRoutes } from '#admin/contract/buckets';
import { count, id, ofTenant, pageOf, paging, reason } from '#admin/contract/common';
import { publicationRoutes } from '#admin/contract/hosts';
import { operationRoutes, storedError } from '#admin/contract/operations';
import { type Role, route } from '#admin/contract/route';
import { snapshotRoutes } from '#admin/contract/snapshots';
import { volumeRoutes } from '#admin/contract/volumes';

const tag = 'bulk';
/** Of one call by ids, and of one by a filter. */
export const MOST_IDS = 1_000;
export const MOST_MATCHING = 10_000;

/** Which things were counted. */
export const digest = z.string().regex(/^[0-9a-f]{64}$/, 'expected the digest of totals');

/** The filters of a list, as its query has them. */
export function filtersOf<Query extends z.ZodObject>({ shape }: Query) {
  const { limit: _limit, cursor: _cursor, sort: _sort, ...filters } = shape as z.ZodRawShape;
  return z.strictObject(filters) as unknown as z.ZodObject<
    Omit<Query['shape'], 'limit' | 'cursor' | 'sort'>,
    z.core.$strict
  >;
}

const chosen = <Filter extends z.ZodObject, Why extends z.ZodType>(filter: Filter, why: Why) =>
  z.union([
    z.strictObject({
      ids: z.array(id).min(1).max(MOST_IDS).meta({ description: 'Of each; what is named twice is done once' }),
      reason: why,
    }),
    z.strictObject({
      filter: filter.meta({ description: 'As the filters of the list: what it matches at this moment' }),
      count: z
        .int()
        .min(1)
        .max(MOST_MATCHING)
        .meta({ description: 'How many you expect: when another number matches, nothing is done (409)' }),
      digest: digest
        .optional()
        .meta({ description: 'Which you expect, as their totals say it: when others match, nothing is done (409)' }),
      reason: why,
    }),
  ]);

const started = z
  .object({
    operation: id.meta({ description: 'The bulk: getOperation shows its progress, cancelOperation stops it' }),
    count: count.meta({ description: 'How many items it has' }),
  })
  .meta({ id: 'StartedBulk' });

const ABOUT =
  'Each is an operation of its own, under the rules of the single call, and nothing is forced: what is refused, or is not there, is an item that failed with its reason. 32 are under way at once; cancelOperation of the bulk ends what has not begun.';

const bulk = <const Id extends string, const Path extends string, Body extends z.ZodType>(
  id: Id,
  path: Path,
  summary: string,
  role: Role,
  body: Body,
  example: unknown,
) =>
  route({
    id,
    method: 'POST',
    path: `/tenants/{tenant}/bulk/${path}` as const,
    tag,
    summary,
    description: ABOUT,
    access: { scope: 'tenant', role },
    params: ofTenant,
    body,
    status: 202,
    reply: started,
    refusals: [409, 507],
    examples: [{ name: 'by ids', params: { tenant: '{tenant}' }, body: example }],
  });

const why = reason.optional();
const { state: _, ...ofBin } = filtersOf(volumeRoutes.list.query).shape;

export const bulkRoutes = {
  deleteVolumes: bulk(
    'bulkDeleteVolumes',
    'delete-volumes',
    'Delete many volumes, into the recycle bin unless they were made otherwise; none that is in the bin already',
    'admin',
    chosen(filtersOf(volumeRoutes.list.query), why),
    { ids: ['{volume}'], reason: 'the project has ended' },
  ),
  purgeVolumes: bulk(
    'bulkPurgeVolumes',
    'purge-volumes',
    'Delete many volumes of the recycle bin for good; none that is not in it',
    'admin',
    chosen(z.strictObject(ofBin), why),
    { ids: ['{binnedVolume}'] },
  ),
  deleteSnapshots: bulk(
    'bulkDeleteSnapshots',
    'delete-snapshots',
    'Delete many snapshots',
    'admin',
    chosen(filtersOf(snapshotRoutes.list.query), why),
    { ids: ['{snapshot}'] },
  ),
  deleteBuckets: bulk(
    'bulkDeleteBuckets',
    'delete-buckets',
    'Delete many buckets, each as its deletePolicy says; registered ones are only let go',
    'admin',
    chosen(filtersOf(bucketRoutes.list.query), why),
    { ids: ['{bucket}'] },
  ),
  unpublish: bulk(
    'bulkUnpublish',
    'unpublish',
    "End many publications, and with them the hosts' sessions",
    'admin',
    chosen(filtersOf(publicationRoutes.list.query), why),
    { ids: ['{publication}'] },
  ),
  retryOperations: bulk(
    'bulkRetryOperations',
    'retry-operations',
    'Try again now many that wait for their next attempt or for a person',
    'operator',
    chosen(ofOperations(), why),
    { ids: ['{operation}'], reason: 'the backend is back' },
  ),
  cancelOperations: bulk(
    'bulkCancelOperations',
    'cancel-operations',
    'Ask many to stop, and to undo what they did',
    'operator',
    chosen(ofOperations(), reason),
    { ids: ['{operation}'], reason: 'the order was withdrawn' },
  ),
  items: route({
    id: 'listBulkItems',
    method: 'GET',
    path: '/operations/{operation}/items',
    tag,
    summary: 'What a bulk is about, and what has become of each',
    description: 'In the order in which they are begun. Of an operation that is no bulk: none.',
    access: { scope: 'any', role: 'viewer' },
    params: z.strictObject({ operation: id }),
    query: z.strictObject({
      ...paging,
      state: z.enum(['waiting', 'running', 'done', 'failed', 'skipped']).optional().meta({ description: 'Only those' }),
    }),
    status: 200,
    reply: pageOf(
      z
        .object({
          id: id.meta({ description: 'Of what it is about' }),
          name: z
            .string()
            .meta({ description: 'As it was called when the bulk was accepted; empty: it was not there' }),
          state: z.enum(['waiting', 'running', 'done', 'failed', 'skipped']).meta({
            description:
              'waiting: not begun; failed: refused, or its operation failed, was cancelled, or waits for a person; skipped: the bulk was stopped before',
          }),
          operation: id.nullable().meta({ description: 'That does it; null when none was begun' }),
          error: storedError.meta({ description: 'Why it failed, or why it waits' }),
        })
        .meta({ id: 'BulkItem' }),
    ),
    examples: [{ name: 'all', params: { operation: '{operation}' } }],
  }),
};

/** Of one tenant: an operation is of one, and so is a bulk. */
export function ofOperations() {
  const { tenant: _tenant, related: _related, ...filters } = filtersOf(operationRoutes.list.query).shape;
  return z.strictObject(filters);
}
