import { bulkRoutes, MOST_MATCHING } from '#admin/contract/bulk';
import { OPERATION_STATES } from '#admin/contract/operations';
import type { RouteContract } from '#admin/contract/route';
import { totalsRoutes } from '#admin/contract/totals';
import { counted } from '#platform/counted';
import type { ApiClient } from '../api/api-client.js';
import { EXIT } from '../api/api-error.js';
import { confirm } from '../api/confirm.js';
import { listed, showOne, showPage } from '../api/output.js';
import {
  type Command,
  choice,
  choiceList,
  flag,
  manyMaybe,
  needed,
  noun,
  type Options,
  one,
  text,
} from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { ofTenant, overApi } from './api-commands.js';
import { limit, OUTPUT, reason, YES } from './options.js';
import { sinceAndUntil } from './times.js';

type StartRoute = Exclude<(typeof bulkRoutes)[keyof typeof bulkRoutes], typeof bulkRoutes.items>;

interface Bulk {
  route: StartRoute;
  /** What counts them, by the filters as its query names them. */
  totals: RouteContract;
  filters: Options;
  /** For its count, beside what is asked for. */
  also?: Readonly<Record<string, string>>;
  noun: string;
  /** What happens to them, for a question; absent: nothing is lost. */
  loses?: string;
  why?: typeof reason;
}

const ids = manyMaybe('their ids, as the list shows them; or --all-matching');
const ID = '0198c0de-0000-7000-8000-000000000000';
const search = text('text', 'with --all-matching: part of the name');
const backend = text('name', 'with --all-matching: only those there');
const condition = choice('yes', ['true', 'false'], 'with --all-matching: only those with, or without, something wrong');
const OF_OPERATIONS = {
  state: choiceList('states', OPERATION_STATES, 'with --all-matching: one or several, with commas'),
  kind: text('kind', 'with --all-matching: for example volume.create, or all of volume'),
  backend,
  resource: text('name', 'with --all-matching: about one thing, by its name or id'),
  error: text('kind', 'with --all-matching: whose last attempt ended so, for example unavailable'),
  ...sinceAndUntil('accepted'),
  stuck: flag('with --all-matching: those that wait for a person, or have failed more than three times'),
};

/** They are looked for one by one. */
const EXACT = { exact: 'true' };

const bulk = (verb: string, about: string, example: string, options: Bulk): Command =>
  ofTenant(verb, about, example, {
    args: { ids },
    options: {
      allMatching: flag('all that the filters match, instead of ids; without filters all that there are'),
      ...options.filters,
      reason: options.why ?? reason,
      ...(options.loses === undefined ? {} : { yes: YES }),
    },
    run: (given, api, tenant) => start(options, given as unknown as Given, api, tenant),
  });

interface Given extends Record<string, unknown> {
  ids: readonly string[];
  allMatching?: boolean;
  reason?: string;
  yes?: boolean;
  json?: boolean;
}

async function start(
  { route, totals, filters, also, noun: what, loses }: Bulk,
  { ids: given, allMatching = false, reason: why, yes, json, ...rest }: Given,
  api: ApiClient,
  tenant: string,
): Promise<void> {
  const filter = Object.fromEntries(
    Object.entries(rest)
      .filter(([name, value]) => Object.hasOwn(filters, name) && value !== undefined)
      .map(([name, value]) => [name, String(value)]),
  );
  if (allMatching === given.length > 0)
    throw new LauncherError('say ids, or --all-matching with filters: one of the two', EXIT.data);
  if (!allMatching && Object.keys(filter).length > 0)
    throw new LauncherError('filters go with --all-matching, and not with ids', EXIT.data);
  const matching = allMatching ? await matched(api, totals, tenant, { ...filter, ...also }) : undefined;
  const count = matching?.count ?? new Set(given.map(id => id.toLowerCase())).size;
  if (count === 0) return showOne({ operation: null, count }, json, () => `no ${what} matches: nothing was done`);
  if (loses !== undefined) await confirm(`${counted(count, what)} of tenant ${tenant} ${loses}`, yes);
  const chosen = matching ? { filter, ...matching } : { ids: given };
  const body = { ...chosen, ...(why === undefined ? {} : { reason: why }) } as never;
  const { reply } = await api.call(route, { params: { tenant }, body });
  const { operation } = reply;
  showOne(
    reply,
    json,
    () =>
      `${counted(count, what)}: \`trivet operation show ${operation}\` says how far it is, \`trivet operation cancel ${operation}\` stops it`,
  );
}

/** How many, and which: those, and no others, are what is begun. */
async function matched(
  api: ApiClient,
  route: RouteContract,
  tenant: string,
  query: Readonly<Record<string, string>>,
): Promise<{ count: number; digest: string | undefined }> {
  const { reply } = await api.call(route as typeof totalsRoutes.volumes, { params: { tenant }, query } as never);
  const { count, more, digest } = reply;
  if (!more && count <= MOST_MATCHING) return { count, digest: digest ?? undefined };
  throw new LauncherError(`more than ${MOST_MATCHING} match: narrow the filters`, EXIT.data);
}

export const BULK = noun('bulk', 'what is done to many at once, as one operation that can be stopped', [
  bulk('delete-volumes', 'into the recycle bin, unless they were made otherwise', '--all-matching --search ci- --yes', {
    route: bulkRoutes.deleteVolumes,
    totals: totalsRoutes.volumes,
    filters: {
      state: choice('state', ['creating', 'ready', 'deleting'], 'with --all-matching: only those'),
      backend,
      search,
      condition,
    },
    noun: 'volume',
    loses: 'are deleted, but for those that are published or have snapshots',
  }),
  bulk('purge-volumes', 'volumes of the recycle bin, for good', `${ID} --yes`, {
    route: bulkRoutes.purgeVolumes,
    totals: totalsRoutes.volumes,
    filters: { backend, search, condition },
    also: { state: 'binned' },
    noun: 'volume',
    loses: 'are deleted for good',
  }),
  bulk('delete-snapshots', 'those that nothing needs', `--all-matching --volume ${ID} --yes`, {
    route: bulkRoutes.deleteSnapshots,
    totals: totalsRoutes.snapshots,
    filters: { volume: text('id', 'with --all-matching: of one volume, by its id'), search },
    noun: 'snapshot',
    loses: 'are deleted',
  }),
  bulk('delete-buckets', 'each as its deletePolicy says; registered ones are only let go', `${ID} --yes`, {
    route: bulkRoutes.deleteBuckets,
    totals: totalsRoutes.buckets,
    filters: {
      state: choice('state', ['creating', 'ready', 'deleting'], 'with --all-matching: only those'),
      backend,
      search,
      condition,
    },
    noun: 'bucket',
    loses: 'are deleted as their deletePolicy says',
  }),
  bulk('unpublish', "end publications, and the hosts' sessions with them", `--all-matching --host ${ID} --yes`, {
    route: bulkRoutes.unpublish,
    totals: totalsRoutes.publications,
    filters: {
      volume: text('id', 'with --all-matching: of one volume, by its id'),
      host: text('id', 'with --all-matching: to one host, by its id'),
    },
    noun: 'publication',
    loses: 'end, and the hosts lose those volumes',
  }),
  bulk('retry-operations', 'try again now what waits, after what held it back was mended', '--all-matching --stuck', {
    route: bulkRoutes.retryOperations,
    totals: totalsRoutes.operations,
    filters: OF_OPERATIONS,
    also: EXACT,
    noun: 'operation',
  }),
  bulk(
    'cancel-operations',
    'ask them to stop, and to undo what they did',
    '--all-matching --kind volume.create --state pending --reason "the order was withdrawn"',
    {
      route: bulkRoutes.cancelOperations,
      totals: totalsRoutes.operations,
      filters: OF_OPERATIONS,
      also: EXACT,
      noun: 'operation',
      why: needed(reason) as typeof reason,
    },
  ),
  overApi('items', 'what a bulk is about, and what has become of each', `${ID} --state failed`, {
    args: { id: one('of the bulk, as it was said when it began') },
    options: {
      state: choice('state', ['waiting', 'running', 'done', 'failed', 'skipped'], 'only those'),
      limit: limit(1_000),
      output: OUTPUT,
    },
    run: async ({ id, state, limit: most, ...shape }, api) => {
      const sent = { params: { operation: id }, query: { state } };
      showPage(await listed(api, bulkRoutes.items, sent, most), {
        ...shape,
        none: 'no such items',
        columns: {
          ID: row => row.id,
          NAME: row => row.name,
          STATE: row => row.state,
          OPERATION: row => row.operation ?? '',
          ERROR: row => row.error?.message ?? '',
        },
      });
    },
  }),
]);
