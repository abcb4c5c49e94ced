import { allTenantsRoutes } from '#admin/contract/all-tenants';
import { type SnapshotReply, snapshotRoutes } from '#admin/contract/snapshots';
import { volumeRoutes } from '#admin/contract/volumes';
import { isUuid } from '#platform/uuid';
import type { ApiClient } from '../api/api-client.js';
import { idOf } from '../api/by-name.js';
import { confirm } from '../api/confirm.js';
import { operationIn, PATIENCE_S, saidOf } from '../api/goes-on.js';
import { ago, facts, listed, showOne } from '../api/output.js';
import { showList } from '../api/watch-list.js';
import { command, flag, initially, noun, one, text, UsageError } from '../command-line/command.js';
import { humanBytes } from '../human-bytes.js';
import { ofTenant, ofTenants, withTenant } from './api-commands.js';
import { limit, OUTPUT, OVER_CSP, WATCH, YES } from './options.js';
import { removeOne } from './remove-one.js';

const snapshot = one('its name or id, as `snapshot list` shows it');
const ofVolume = text('volume', 'by its name or id; needed where several have a snapshot of that name');

export const SNAPSHOT = noun('snapshot', 'snapshots of volumes', [
  ofTenants(
    'list',
    'the newest first; of one volume, in the order in which they were cut',
    '--volume data',
    {
      volume: text('volume', 'only those of one volume, by its name or id'),
      search: text('text', 'part of the name'),
      limit: limit(1_000),
      output: OUTPUT,
      watch: WATCH,
    },
    async ({ volume, search, limit: most, ...shape }, api, tenant) => {
      const of = volume === undefined ? undefined : await anyVolumeIdOf(api, tenant, volume);
      const query = { search, ...(of === undefined ? {} : { volume: of, sort: 'cut' as const }) };
      const shown = { ...shape, tenant, none: 'no snapshots yet: trivet snapshot create VOLUME NAME' };
      if (tenant === undefined) {
        const read = () => listed(api, allTenantsRoutes.snapshots, { query }, most);
        return showList(api, read, { ...shown, columns: withTenant(COLUMNS) });
      }
      const read = () => listed(api, snapshotRoutes.list, { params: { tenant }, query }, most);
      return showList(api, read, { ...shown, columns: COLUMNS });
    },
  ),
  ofTenant('show', 'one of them', 'monday --volume data --tenant acme', {
    args: { snapshot },
    options: { volume: ofVolume },
    run: async ({ snapshot: given, volume, json }, api, tenant) => {
      const params = { tenant, snapshot: await snapshotIdOf(api, tenant, given, volume) };
      const { reply } = await api.call(snapshotRoutes.get, { params });
      showOne(reply, json, () => describeSnapshot(reply));
    },
  }),
  ofTenant('create', 'take one', 'data monday --tenant acme', {
    args: { volume: one('its name or id'), name: one('of the snapshot; no other one of the volume may have it') },
    options: { description: initially(text('text', 'for people'), '') },
    run: async ({ volume, name, description, json }, api, tenant) => {
      const body = { volume: await volumeIdOf(api, tenant, volume), name, description };
      const answer = await api.call(snapshotRoutes.create, { params: { tenant }, body, waitSeconds: PATIENCE_S });
      const called = `${answer.reply.name} (${answer.reply.id})`;
      showOne(answer.reply, json, () =>
        saidOf(operationIn(answer), `${called} is taken of ${answer.reply.volume.name}`, `${called} is being taken`),
      );
    },
  }),
  ofTenant('delete', 'for good', 'monday --volume data --tenant acme --yes', {
    args: { snapshot },
    options: { volume: ofVolume, yes: YES },
    run: async ({ snapshot: given, volume, yes, json }, api, tenant) => {
      const params = { tenant, snapshot: await snapshotIdOf(api, tenant, given, volume) };
      await removeOne(api, snapshotRoutes, params, {
        before: ({ name, id, volume: of }) =>
          confirm(`snapshot ${name} (${id}) of volume ${of.name} is deleted for good`, yes),
        json,
      });
    },
  }),
  command('changes', 'which ranges of a snapshot hold data, or changed since another one', 'tuesday --base monday', {
    was: ['changes'],
    args: { snapshot: one('name or id') },
    options: {
      base: text('snapshot', 'an older snapshot of the same volume: name, or id, also of a deleted one'),
      json: flag('for scripts'),
      ...OVER_CSP,
    },
    run: async given => (await import('./changes.js')).showChanges(given),
  }),
]);

const COLUMNS = {
  NAME: (row: SnapshotReply) => row.name,
  VOLUME: (row: SnapshotReply) => row.volume.name,
  STATE: (row: SnapshotReply) => (row.condition === null ? row.state : 'needs attention'),
  SIZE: (row: SnapshotReply) => bytesOf(row.size),
  CHANGED: (row: SnapshotReply) => bytesOf(row.changedBytes),
  TEMPLATE: (row: SnapshotReply) => row.template ?? '-',
  AGE: (row: SnapshotReply) => ago(row.createdAt),
  ID: (row: SnapshotReply) => row.id,
  CONDITION: (row: SnapshotReply) => row.condition?.message ?? '',
};

/** Volumes of several tenants may have one name: of all tenants it is called by its id. */
function anyVolumeIdOf(api: ApiClient, tenant: string | undefined, given: string): Promise<string> | string {
  if (tenant !== undefined) return volumeIdOf(api, tenant, given);
  if (isUuid(given)) return given;
  throw new UsageError('--volume takes an id with --all-tenants');
}

const volumeIdOf = (api: ApiClient, tenant: string, given: string): Promise<string> =>
  idOf(api, tenant, volumeRoutes.list, given, { noun: 'volume' });

/** Snapshots of several volumes may have one name. */
export async function snapshotIdOf(
  api: ApiClient,
  tenant: string,
  given: string,
  volume: string | undefined,
): Promise<string> {
  const query = volume === undefined ? {} : { volume: await volumeIdOf(api, tenant, volume) };
  const where = ({ volume: of }: SnapshotReply): string => `of volume ${of.name}`;
  return idOf(api, tenant, snapshotRoutes.list, given, { noun: 'snapshot', where, query });
}

const bytesOf = (bytes: string | null): string => (bytes === null ? '-' : humanBytes(bytes));

const describeSnapshot = (reply: SnapshotReply): string =>
  facts([
    ['name', reply.name],
    ['id', reply.id],
    ['volume', `${reply.volume.name} (${reply.volume.id})`],
    ['backend', reply.backend],
    ['state', reply.state],
    ['condition', reply.condition?.message],
    ['size', reply.size && humanBytes(reply.size)],
    ['cut', reply.cutAt],
    ['changed blocks', `${reply.index}, ${bytesOf(reply.changedBytes)} since the cut before`],
    ['template', reply.template],
    ['group', reply.group],
    ['operation', reply.operation],
    ['asked for', reply.createdAt],
  ]);
