import { type Command, Option } from 'commander';
import type { ReplyOf } from '#admin/contract/route';
import { publicationRoutes, type VolumeReply, volumeRoutes } from '#admin/contract/volumes';
import { invalid } from '#platform/errors';
import { isUuid } from '#platform/uuid';
import { listBin, restoreFromBin } from '#storage/volumes/recycle-bin';
import { DEFAULT_TENANT } from '#tenancy/login-name';
import { findTenant } from '#tenancy/users';
import type { ApiClient } from '../api/api-client.js';
import { inTenant, ofTenant, type TenantOptions } from '../api/api-command.js';
import { ApiError } from '../api/api-error.js';
import { limitOf, listed, say, sayJson, showPage } from '../api/output.js';
import { humanBytes } from '../human-bytes.js';
import { asOperator, type Operator } from '../operator.js';
import { show } from '../show.js';
import { registerImport } from './volume-import.js';

interface TenantOption {
  tenant: string;
}
interface ListOptions extends TenantOptions {
  state?: VolumeReply['state'];
  backend?: string;
  search?: string;
  condition?: boolean;
  limit: number;
}

const asTenant = <T>(tenant: string, work: (operator: Operator, tenantId: string) => Promise<T>): Promise<T> =>
  asOperator(async operator => work(operator, await findTenant(operator.database, tenant)));

/** What a script compares; for people a condition says more than a state. */
const stateOf = ({ state, condition }: VolumeReply): string => (condition === null ? state : 'needs attention');

export function register(program: Command): void {
  const volume = program.command('volume').description('block volumes of a tenant');
  const command = (name: string, description: string): Command =>
    volume.command(name).description(description).option('--tenant <name>', 'whose', DEFAULT_TENANT);

  ofTenant(volume.command('list').description('volumes, where they are and who has them'))
    .addOption(new Option('--state <state>', 'only those').choices(['creating', 'ready', 'deleting', 'binned']))
    .option('--backend <name>', 'only those there')
    .option('--search <text>', 'part of the name')
    .option('--condition', 'only those with which something is wrong')
    .option('--limit <n>', 'how many at most', limitOf, 1_000)
    .action(({ state, backend, search, condition, limit, json, ...options }: ListOptions) =>
      inTenant(options, async (api, name) => {
        const query = { state, backend, search, ...(condition ? { condition: 'true' as const } : {}) };
        const sent = { params: { tenant: name }, query };
        const page = await listed<VolumeReply, typeof volumeRoutes.list>(api, volumeRoutes.list, sent, limit);
        const hosts = json ? undefined : await hostsOf(api, name, page.items);
        showPage(page, {
          json,
          none: 'no volumes yet: a CSP client makes them',
          columns: {
            NAME: row => row.name,
            SIZE: row => humanBytes(row.size),
            POOL: row => (row.folder === '' ? row.pool : `${row.pool}/${row.folder}`),
            STATE: stateOf,
            'PUBLISHED TO': row => hosts?.get(row.id)?.join(' ') ?? '',
            SNAPSHOTS: row => String(row.snapshots),
            ID: row => row.id,
            CONDITION: row => row.condition?.message ?? '',
          },
        });
      }),
    );
  command('bin', 'deleted volumes that can still be restored')
    .option('--json', 'for scripts')
    .action(({ tenant, json }: TenantOption & { json?: boolean }) =>
      asTenant(tenant, async ({ database }, tenantId) =>
        show(await listBin(database, tenantId), {
          json,
          none: 'the recycle bin is empty',
          columns: {
            NAME: row => row.name,
            SIZE: row => humanBytes(row.sizeBytes),
            POOL: row => row.pool,
            'KEPT UNTIL': row => row.binnedUntil.toISOString(),
            ID: row => row.id,
          },
        }),
      ),
    );
  command('restore', 'put a deleted volume back, under its name and id')
    .argument('<id>', 'as `volume bin` shows it')
    .action((id: string, { tenant }: TenantOption) =>
      asTenant(tenant, async ({ database }, tenantId) => {
        if (!isUuid(id)) throw invalid('id', 'expected the id that `volume bin` shows');
        await restoreFromBin(database, tenantId, id);
        process.stdout.write(`${id} is back; publish it as before\n`);
      }),
    );
  registerImport(volume);
  ofTenant(volume.command('purge').description('delete volumes of the recycle bin for good, before their time'))
    .argument('[id...]', 'as `volume bin` shows them')
    .option('--all', 'everything that is in the bin')
    .action((ids: string[], { all, json, ...options }: TenantOptions & { all?: boolean }) =>
      inTenant(options, async (api, tenant) => {
        if (ids.length === 0 ? !all : all) throw invalid('id', 'say ids that `volume bin` shows, or --all');
        const purged: string[] = [];
        try {
          for (const id of all ? await idsInBin(api, tenant) : ids) {
            const name = await purge(api, tenant, id, all ?? false);
            if (name === undefined) continue;
            purged.push(id);
            if (!json) say(`${name} (${id}) is being deleted for good`);
          }
        } finally {
          // Also when one of them failed: the others are gone.
          if (json) sayJson(purged);
        }
        if (!json && purged.length === 0) say('the recycle bin is empty');
      }),
    );
}

/** Gives its name; nothing for one that --all had listed, and that was restored meanwhile or whose time has ended. */
async function purge(api: ApiClient, tenant: string, id: string, isListed: boolean): Promise<string | undefined> {
  const params = { tenant, volume: id };
  for (;;) {
    try {
      const { reply, etag } = await api.call(volumeRoutes.get, { params });
      if (reply.state === 'binned') {
        // The removal goes on by itself, and what it held is free for others from now on.
        await api.call(volumeRoutes.delete, { params, query: {}, ifMatch: etag, waitSeconds: 0 });
        return reply.name;
      }
      if (isListed) return undefined;
      throw invalid('id', `${reply.name} (${id}) is not in the recycle bin`);
    } catch (error) {
      if (!isListed || !(error instanceof ApiError)) throw error;
      if (error.status === 404) return undefined;
      // Changed since it was read: what it is now decides.
      if (error.status !== 412) throw error;
    }
  }
}

async function idsInBin(api: ApiClient, tenant: string): Promise<string[]> {
  const sent = { params: { tenant }, query: { state: 'binned' as const } };
  const { items } = await listed<VolumeReply, typeof volumeRoutes.list>(api, volumeRoutes.list, sent, MOST_BINNED);
  return items.map(({ id }) => id);
}

type Publication = ReplyOf<typeof publicationRoutes.list>['items'][number];
const MOST_BINNED = 100_000;
/** Nobody reads more of them in a table. */
const MOST_PUBLICATIONS = 10_000;

/** Names of the hosts that have each volume. */
async function hostsOf(
  api: ApiClient,
  tenant: string,
  volumes: readonly VolumeReply[],
): Promise<Map<string, string[]>> {
  const hosts = new Map<string, string[]>();
  if (volumes.every(({ publications }) => publications === 0)) return hosts;
  const sent = { params: { tenant } };
  const { items } = await listed<Publication, typeof publicationRoutes.list>(
    api,
    publicationRoutes.list,
    sent,
    MOST_PUBLICATIONS,
  );
  for (const { volume, host } of items) hosts.set(volume.id, [...(hosts.get(volume.id) ?? []), host.name].sort());
  return hosts;
}
