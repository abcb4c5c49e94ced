import { z } from 'zod';
import { bucketRoutes } from '#admin/contract/buckets';
import { digest, filtersOf, ofOperations } from '#admin/contract/bulk';
import { bytes, count, ofTenant } from '#admin/contract/common';
import { publicationRoutes } from '#admin/contract/hosts';
import { route } from '#admin/contract/route';
import { snapshotRoutes } from '#admin/contract/snapshots';
import { volumeRoutes } from '#admin/contract/volumes';

const totals = z
  .object({
    count: count.meta({ description: 'How many match; at most 10,000 where they are counted one by one' }),
    more: z.boolean().meta({ description: 'There are more than `count`' }),
    bytes: bytes
      .nullable()
      .meta({ description: 'What they hold together; null when not all were counted, or nothing there has a size' }),
    digest: digest
      .nullable()
      .meta({ description: 'Which they are, for a bulk that is about just these; null when not all were counted' }),
  })
  .meta({ id: 'Totals' });
export type TotalsReply = z.output<typeof totals>;

const of = <const Id extends string, const List extends string, Query extends z.ZodObject>(
  id: Id,
  list: List,
  summary: string,
  query: Query,
) =>
  route({
    id,
    method: 'GET',
    path: `/tenants/{tenant}/totals/${list}` as const,
    tag: 'totals',
    summary,
    description: 'By the filters of the list. A long list is not counted to its end: `more` says so.',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    query,
    status: 200,
    reply: totals,
    examples: [{ name: 'of all', params: { tenant: '{tenant}' } }],
  });

export const totalsRoutes = {
  volumes: of('totalVolumes', 'volumes', 'How many volumes match, and their sizes', filtersOf(volumeRoutes.list.query)),
  snapshots: of('totalSnapshots', 'snapshots', 'How many snapshots match', filtersOf(snapshotRoutes.list.query)),
  buckets: of(
    'totalBuckets',
    'buckets',
    'How many buckets match, and what they hold',
    filtersOf(bucketRoutes.list.query),
  ),
  publications: of(
    'totalPublications',
    'publications',
    'How many publications match',
    filtersOf(publicationRoutes.list.query),
  ),
  operations: of(
    'totalOperations',
    'operations',
    'How many operations match',
    ofOperations().extend({
      exact: z
        .enum(['true', 'false'])
        .optional()
        .meta({ description: 'true: looks for up to 20 s; else for one, and says that there are more' }),
    }),
  ),
};
