import { protectionRoutes } from '#admin/contract/protection';
import { parseSchedule, showSchedule } from '#storage/block/protection/schedule-text';
import { facts, showOne } from '../api/output.js';
import { many, noun, one } from '../command-line/command.js';
import { deletion, listing, ofTenant } from './api-commands.js';
import { NAME } from './options.js';

export const PROTECTION = noun('protection', 'templates by which volumes are snapshotted', [
  listing('templates, their schedules, and how many volumes have them', '', {
    route: protectionRoutes.list,
    most: 1_000,
    none: 'no templates',
    columns: {
      NAME: row => row.name,
      VOLUMES: row => String(row.volumes),
      SHIPPED: row => (row.shipped ? 'yes' : 'no'),
      'SCHEDULES (NAME:EVERY@AT:RETAIN, UTC)': row => row.schedules.map(showSchedule).join(' '),
    },
  }),
  ofTenant('show', 'one of them', 'mine', {
    args: { name: NAME },
    run: async ({ name, json }, api, tenant) => {
      const { reply } = await api.call(protectionRoutes.get, { params: { tenant, template: name } });
      showOne(reply, json, () =>
        facts([
          ['name', reply.name],
          ['id', reply.id],
          ['shipped', reply.shipped ? 'yes' : 'no'],
          ['volumes', String(reply.volumes)],
          ...reply.schedules.map((each, at) => [at === 0 ? 'schedules' : '', `${showSchedule(each)} UTC`] as const),
          ['made', reply.createdAt],
        ]),
      );
    },
  }),
  ofTenant('create', 'a template of your own', 'mine hourly:1h:48 nightly:1d@02:30:30', {
    was: ['protection add'],
    args: {
      name: one('what volumes ask for as protection_template'),
      schedules: many('NAME:EVERY:RETAIN, e.g. hourly:1h:48 nightly:1d@02:30:30 weekly:1w@sun-03:00:52; times are UTC'),
    },
    run: async ({ name, schedules, json }, api, tenant) => {
      const body = { name, schedules: schedules.map(parseSchedule) };
      const { reply } = await api.call(protectionRoutes.create, { params: { tenant }, body });
      showOne(reply, json, () => `${name} may be used`);
    },
  }),
  ofTenant('change', 'give one of your own other schedules, by which its volumes go from now on', 'mine hourly:2h:24', {
    args: {
      name: NAME,
      schedules: many(
        'all that it is to have, as for `create`; what one made that is gone stays until somebody deletes it',
      ),
    },
    run: async ({ name, schedules, json }, api, tenant) => {
      const params = { tenant, template: name };
      const reply = await api.change(protectionRoutes, params, { schedules: schedules.map(parseSchedule) });
      showOne(reply, json, () => `${name} is changed, for ${reply.volumes} volumes`);
    },
  }),
  deletion('a template that no volume has; the snapshots that it made stay', 'mine', protectionRoutes, {
    was: ['protection remove'],
  }),
]);
