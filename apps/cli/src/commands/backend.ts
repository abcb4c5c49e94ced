import { type BackendKindReply, backendRoutes } from '#admin/contract/backends';
import type { ReplyOf } from '#admin/contract/route';
import { EXIT } from '../api/api-error.js';
import { printable, say, sayJson, showOne } from '../api/output.js';
import { flag, maybe, noun } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { table } from '../table.js';
import { deletion, listing, ofTenant, overApi, states } from './api-commands.js';
import { CHANGES, changesOf, REGISTRATION, registrationOf } from './backend-forms.js';
import { kindsOf, type Setting, settingsOf } from './backend-settings.js';
import { describeBackend, holdsOf } from './describe-backend.js';
import { LABEL, NAME } from './options.js';

export const BACKEND = noun('backend', 'where objects and volumes are kept', [
  listing('backends of a tenant; --tenant appliance: those that can be shared', '--tenant appliance', {
    route: backendRoutes.list,
    most: 200,
    none: 'no backends yet: trivet backend create NAME',
    columns: {
      NAME: row => row.name,
      KIND: row => (row.shared ? `${row.kind}, shared` : row.kind),
      STATE: row => row.state,
      HEALTH: row => row.health.state,
      HOLDS: holdsOf,
      USED: row => (row.capacity ? `${humanBytes(row.capacity.used)} of ${humanBytes(row.capacity.total)}` : ''),
      REASON: row => row.health.reason ?? '',
    },
  }),
  overApi('kinds', 'kinds of backend, and what each is configured by', 'rgw', {
    args: { kind: maybe('that one with all its fields') },
    run: async ({ kind, json }, api) => {
      const kinds = (await kindsOf(api)).filter(known => kind === undefined || known.kind === kind);
      if (kinds.length === 0) throw new LauncherError(`there is no kind ${kind}: trivet backend kinds`, EXIT.data);
      if (json) return sayJson({ items: kinds });
      process.stdout.write(
        kind === undefined
          ? table(['KIND', 'TITLE', 'FOR'], kinds.map(titleOf))
          : table(['FIELD', 'NEEDED', 'MEANING'], fieldsOf(kinds[0]!).map(rowOf)),
      );
    },
  }),
  ofTenant(
    'create',
    'register one, or share one of the appliance',
    'store --kind rgw --config-file store.json --credentials-file keys.json',
    {
      was: ['backend add'],
      args: { name: LABEL },
      options: {
        ...REGISTRATION,
        dryRun: flag('register nothing: test whether it answers, knows us and can do what is needed'),
      },
      run: async (given, api, tenant) => {
        const body = await registrationOf(api, given);
        if (given.dryRun) {
          if ('share' in body)
            throw new LauncherError('a share is tested at the appliance: trivet backend test NAME', EXIT.data);
          const { description: _, ...asked } = body;
          const { reply } = await api.call(backendRoutes.tryOut, { params: { tenant }, body: asked });
          return showTest(reply, given.name, given.json);
        }
        const { reply } = await api.call(backendRoutes.create, { params: { tenant }, body });
        const next = `trivet backend test ${reply.name} --tenant ${tenant}`;
        showOne(reply, given.json, () => `${reply.name} is registered; next: ${next}`);
      },
    },
  ),
  ofTenant('show', 'its settings, health and pools, and what it holds; never its keys', 'store --tenant acme', {
    args: { name: NAME },
    run: async ({ name, json }, api, tenant) => {
      const { reply } = await api.call(backendRoutes.get, { params: { tenant, backend: name } });
      showOne(reply, json, () => describeBackend(reply));
    },
  }),
  ofTenant(
    'change',
    'give it other settings or keys; those that are not named stay',
    'store --credentials-file keys.json --reason "the key was wrong"',
    {
      args: { name: NAME },
      options: CHANGES,
      run: async ({ name, ...given }, api, tenant) => {
        const params = { tenant, backend: name };
        // One reading for both: the settings that stay are those of the version that is changed.
        const { reply: found, etag } = await api.call(backendRoutes.get, { params });
        const body = await changesOf(api, found, given);
        const { reply } = await api.call(backendRoutes.change, { params, body, ifMatch: etag });
        const next = `trivet backend test ${reply.name} --tenant ${tenant}`;
        showOne(reply, given.json, () => `${reply.name} is changed; next: ${next}`);
      },
    },
  ),
  ofTenant('test', 'ask it whether it answers, knows us and can do what is needed; changes nothing there', 'store', {
    args: { name: NAME },
    run: async ({ name, json }, api, tenant) => {
      const { reply } = await api.call(backendRoutes.test, { params: { tenant, backend: name } });
      showTest(reply, name, json);
    },
  }),
  ...states(
    backendRoutes,
    'store --reason "new disks"',
    reply => `${reply.name} is ${reply.state}; it holds ${holdsOf(reply) || 'nothing'}`,
    [
      ['cordon', 'make nothing new there', 'cordoned'],
      ['drain', 'the same, until it holds nothing', 'draining'],
      ['uncordon', 'take it back', 'active'],
    ],
  ),
  deletion('forget one that holds nothing of ours', 'store', backendRoutes, { was: ['backend remove'] }),
]);

/** Ends with 1 where a check failed. */
function showTest(reply: ReplyOf<typeof backendRoutes.test>, name: string, json: boolean | undefined): void {
  process.exitCode = reply.ok ? 0 : EXIT.refused;
  if (json) {
    sayJson(reply);
    return;
  }
  for (const check of reply.checks) say(`${check.ok ? 'ok  ' : 'fail'}  ${check.name}: ${printable(check.detail)}`);
  say(`${name} ${reply.ok ? 'is usable' : 'is not usable'} (${Math.round(reply.milliseconds)} ms)`);
}

const titleOf = ({ kind, title, description }: BackendKindReply): string[] =>
  [kind, title, description].map(part => printable(part));
const fieldsOf = ({ config, credentials }: BackendKindReply) => settingsOf({ properties: { config, credentials } });
const rowOf = ({ name, needed, meaning }: Setting): string[] => [name, needed, meaning].map(part => printable(part));
