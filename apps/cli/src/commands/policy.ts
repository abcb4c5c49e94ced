import { policyRoutes } from '#admin/contract/protection';
import { invalid } from '#platform/errors';
import { showOne } from '../api/output.js';
import { initially, manyMaybe, noun, one, text } from '../command-line/command.js';
import { deletion, listing, ofTenant } from './api-commands.js';

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
  deletion('a policy of your own; volumes made with it stay as they are', 'cold', policyRoutes, {
    was: ['policy remove'],
  }),
]);

function pair(given: string): [string, string] {
  const at = given.indexOf('=');
  if (at < 1) throw invalid('setting', `"${given}": expected KEY=VALUE`);
  return [given.slice(0, at), given.slice(at + 1)];
}
