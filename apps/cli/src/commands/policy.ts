import { policyRoutes } from '#admin/contract/protection';
import { invalid } from '#platform/errors';
import { facts, showOne } from '../api/output.js';
import { initially, manyMaybe, noun, one, text } from '../command-line/command.js';
import { deletion, listing, ofTenant } from './api-commands.js';
import { NAME } from './options.js';

export const POLICY = noun('policy', 'performance policies by which volumes are made', [
  listing('policies and what they set', '', {
    route: policyRoutes.list,
    none: 'no policies',
    columns: {
      NAME: row => row.name,
      SHIPPED: row => (row.shipped ? 'yes' : 'no'),
      SETS: row =>
        Object.entries(row.config)
          .map(([key, value]) => `${key}=${value}`)
          .join(' '),
      DESCRIPTION: row => row.description,
    },
  }),
  ofTenant('create', 'a policy of your own', 'cold pool=slow --description "rarely read"', {
    was: ['policy add'],
    args: {
      name: one('what volumes ask for as performance_policy'),
      settings: manyMaybe('KEY=VALUE for volumes whose creator does not say, e.g. thick=true pool=fast'),
    },
    options: { description: initially(text('text', 'for people'), '') },
    run: async ({ name, settings, description, json }, api, tenant) => {
      const config = Object.fromEntries(settings.map(pair));
      const body = { name, description, config };
      const { reply } = await api.call(policyRoutes.create, { params: { tenant }, body });
      showOne(reply, json, () => `${reply.name} may be used`);
    },
  }),
  ofTenant('show', 'one of them', 'cold', {
    args: { name: NAME },
    run: async ({ name, json }, api, tenant) => {
      const { reply } = await api.call(policyRoutes.get, { params: { tenant, policy: name } });
      showOne(reply, json, () =>
        facts([
          ['name', reply.name],
          ['description', reply.description],
          ['shipped', reply.shipped ? 'yes' : 'no'],
          ...Object.entries(reply.config).map(
            ([key, value], at) => [at === 0 ? 'sets' : '', `${key}=${value}`] as const,
          ),
        ]),
      );
    },
  }),
  ofTenant(
    'change',
    'one of your own, for volumes that are made from now on; what is not named stays',
    'cold pool=slow',
    {
      args: { name: NAME, settings: manyMaybe('KEY=VALUE, or KEY= for what it sets no longer') },
      options: { description: text('text', 'for people') },
      run: async ({ name, settings, description, json }, api, tenant) => {
        if (settings.length === 0 && description === undefined)
          throw invalid('setting', 'nothing to change: give KEY=VALUE or --description');
        const params = { tenant, policy: name };
        const { reply: found, etag } = await api.call(policyRoutes.get, { params });
        const given = Object.fromEntries(settings.map(pair));
        const config = Object.fromEntries(
          Object.entries({ ...found.config, ...given }).filter(([, value]) => value !== ''),
        );
        const body = {
          ...(description === undefined ? {} : { description }),
          ...(settings.length > 0 ? { config } : {}),
        };
        const { reply } = await api.call(policyRoutes.change, { params, body, ifMatch: etag });
        showOne(reply, json, () => `${reply.name} is changed; volumes that are there stay as they are`);
      },
    },
  ),
  deletion('a policy of your own; volumes made with it stay as they are', 'cold', policyRoutes, {
    was: ['policy remove'],
  }),
]);

function pair(given: string): [string, string] {
  const at = given.indexOf('=');
  if (at < 1) throw invalid('setting', `"${given}": expected KEY=VALUE`);
  return [given.slice(0, at), given.slice(at + 1)];
}
