import { type VolumeReply, volumeRoutes } from '#admin/contract/volumes';
import type { ApiClient } from '../api/api-client.js';
import { EXIT } from '../api/api-error.js';
import { idOf } from '../api/by-name.js';
import { confirm } from '../api/confirm.js';
import { operationIn, PATIENCE_S, saidOf } from '../api/goes-on.js';
import { facts, showOne } from '../api/output.js';
import { type Command, flag, initially, needed, one, parsed, text } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { ofTenant } from './api-commands.js';
import { readSize, YES } from './options.js';
import { removeOne } from './remove-one.js';
import { snapshotIdOf } from './snapshot.js';

const volume = one('its name or id, as `volume list` shows it');
const protection = text('name', 'protection template: its schedules take snapshots');
const description = text('text', 'for people');

const sizeOf = (about: string) => parsed('bytes', about, readSize);
const findVolume = (api: ApiClient, tenant: string, given: string): Promise<string> =>
  idOf(api, tenant, volumeRoutes.list, given, { noun: 'volume' });

/** What one does with one volume over the API. */
export const VOLUME_CHANGES: readonly Command[] = [
  ofTenant('show', 'one of them', 'data --tenant acme', {
    args: { volume },
    run: async ({ volume: given, json }, api, tenant) => {
      const params = { tenant, volume: await findVolume(api, tenant, given) };
      const { reply } = await api.call(volumeRoutes.get, { params });
      showOne(reply, json, () => describeVolume(reply));
    },
  }),
  ofTenant('create', 'make an empty one', 'data --size 10GiB --pool fast --tenant acme', {
    args: { name: one('what it is called; no other volume of the tenant may be') },
    options: {
      size: needed(sizeOf('how large hosts see it, e.g. 10GiB')),
      backend: text('name', 'if the tenant has several of block volumes'),
      pool: text('pool', 'else where the tenant makes its volumes'),
      thick: flag('takes its space at once'),
      protection,
      description: initially(description, ''),
    },
    run: async ({ protection: protectionTemplate, json, name, size, backend, pool, thick, ...more }, api, tenant) => {
      const body = { name, size, backend, pool, thick, protectionTemplate, description: more.description };
      const answer = await api.call(volumeRoutes.create, { params: { tenant }, body, waitSeconds: PATIENCE_S });
      tellMade(answer, json, `is there, ${humanBytes(answer.reply.size)} in pool ${answer.reply.pool}`);
    },
  }),
  ofTenant('clone', 'a new one with the content of another, as it is now or was', 'data copy --snapshot monday', {
    args: { volume, name: one('of the new one') },
    options: {
      snapshot: text('snapshot', 'of that volume, by its name or id: as it was then; else as it is now'),
      size: sizeOf('of the new one, not below what it is cloned from'),
      pool: text('pool', 'else that of the volume'),
      description: initially(description, ''),
    },
    run: async ({ volume: given, name, snapshot, json, ...more }, api, tenant) => {
      const id = await findVolume(api, tenant, given);
      const { backend } = (await api.call(volumeRoutes.get, { params: { tenant, volume: id } })).reply;
      const source =
        snapshot === undefined ? { volume: id } : { snapshot: await snapshotIdOf(api, tenant, snapshot, id) };
      const body = { name, backend, source, size: more.size, pool: more.pool, description: more.description };
      const answer = await api.call(volumeRoutes.create, { params: { tenant }, body, waitSeconds: PATIENCE_S });
      tellMade(answer, json, `is a clone of ${given}${snapshot === undefined ? '' : ` as of ${snapshot}`}`);
    },
  }),
  ofTenant('change', 'make it larger, describe or protect it', 'data --size 20GiB --tenant acme', {
    args: { volume },
    options: {
      size: sizeOf('larger than it is; hosts see it when they look again'),
      protection,
      unprotected: flag('takes it from its protection template; the snapshots stay'),
      description,
    },
    run: async ({ volume: given, size, protection: template, unprotected, ...more }, api, tenant) => {
      if (template !== undefined && unprotected)
        throw new LauncherError('--protection and --unprotected: give one of the two', EXIT.data);
      if ([size, template, unprotected, more.description].every(value => value === undefined))
        throw new LauncherError(
          'nothing to change: give --size, --protection, --unprotected or --description',
          EXIT.data,
        );
      const params = { tenant, volume: await findVolume(api, tenant, given) };
      const { etag } = await api.call(volumeRoutes.get, { params });
      const body = {
        size,
        description: more.description,
        protectionTemplate: unprotected ? null : template,
      };
      const answer = await api.call(volumeRoutes.change, { params, body, ifMatch: etag, waitSeconds: PATIENCE_S });
      const { name, size: now } = answer.reply;
      showOne(answer.reply, more.json, () =>
        saidOf(operationIn(answer), `${name} is changed, ${humanBytes(now)}`, `${name} is being changed`),
      );
    },
  }),
  ofTenant(
    'delete',
    'into the recycle bin, unless it was made otherwise; one that is there, for good',
    'data --tenant acme --yes',
    {
      args: { volume },
      options: { force: flag('also ends the sessions of hosts, and takes its snapshots along'), yes: YES },
      run: async ({ volume: given, force = false, yes, json }, api, tenant) => {
        const params = { tenant, volume: await findVolume(api, tenant, given) };
        await removeOne(api, volumeRoutes, params, {
          query: { force: String(force) },
          before: found => confirm(lossOf(found, force), yes),
          afterwards: '; `trivet volume bin` shows what can still be restored',
          json,
        });
      },
    },
  ),
];

function tellMade(
  answer: { status: number; location?: string; reply: VolumeReply },
  json: boolean | undefined,
  done: string,
): void {
  const { name, id } = answer.reply;
  const called = `${name} (${id})`;
  showOne(answer.reply, json, () => saidOf(operationIn(answer), `${called} ${done}`, `${called} is being made`));
}

function lossOf({ name, id, size, state, snapshots, publications }: VolumeReply, force: boolean): string {
  const along = force ? ` with its ${snapshots} snapshots, and ${publications} hosts lose it` : '';
  return `volume ${name} (${id}), ${humanBytes(size)}, is deleted${state === 'binned' ? ' for good' : ''}${along}`;
}

const describeVolume = (reply: VolumeReply): string =>
  facts([
    ['name', reply.name],
    ['id', reply.id],
    ['description', reply.description],
    ['state', reply.state],
    ['condition', reply.condition?.message],
    ['size', `${humanBytes(reply.size)} (${reply.size} bytes)${reply.thick ? ', thick' : ''}`],
    ['backend', reply.backend],
    ['pool', reply.folder === '' ? reply.pool : `${reply.pool}/${reply.folder}`],
    ['published to', `${reply.publications} hosts`],
    ['snapshots', String(reply.snapshots)],
    ['protection', reply.protectionTemplate],
    ['clone of', reply.cloneOf],
    ['serial', reply.serialNumber],
    ['restorable until', reply.binnedUntil],
    ['operation', reply.operation],
    ['made', reply.createdAt],
    ['changed', reply.updatedAt],
  ]);
