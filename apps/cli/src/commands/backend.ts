import { type BackendKindReply, type BackendReply, backendRoutes } from '#admin/contract/backends';
import type { ApiClient } from '../api/api-client.js';
import { EXIT } from '../api/api-error.js';
import { readJsonFile } from '../api/given-file.js';
import { printable, say, sayJson, showOne } from '../api/output.js';
import { initially, maybe, noun, parsed, repeated, text, type Values } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { table } from '../table.js';
import { deletion, listing, ofTenant, overApi, states } from './api-commands.js';
import { configOf, kindsOf, type Setting, settingsOf } from './backend-settings.js';
import { collectSetting, LABEL, NAME } from './options.js';

const registration = {
  kind: text('kind', 'rgw, s3, azure, garage, gcs, reflink, rbd, ...: trivet backend kinds'),
  set: repeated(parsed('field=value', 'a setting of its kind; again for each', collectSetting)),
  configFile: text('file', 'its settings in JSON; - is standard input; --set goes over it'),
  credentialsFile: text('file', 'its keys in JSON; - is standard input'),
  share: text('name', 'a backend of the tenant `appliance`, instead of the four above'),
  description: initially(text('text', 'for people'), ''),
};

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
      options: registration,
      run: async (given, api, tenant) => {
        const { reply } = await api.call(backendRoutes.create, { params: { tenant }, body: await bodyOf(api, given) });
        const next = `trivet backend test ${reply.name} --tenant ${tenant}`;
        showOne(reply, given.json, () => `${reply.name} is registered; next: ${next}`);
      },
    },
  ),
  ofTenant('test', 'ask it whether it answers, knows us and can do what is needed; changes nothing there', 'store', {
    args: { name: NAME },
    run: async ({ name, json }, api, tenant) => {
      const { reply } = await api.call(backendRoutes.test, { params: { tenant, backend: name } });
      process.exitCode = reply.ok ? 0 : EXIT.refused;
      if (json) return sayJson(reply);
      for (const check of reply.checks) say(`${check.ok ? 'ok  ' : 'fail'}  ${check.name}: ${printable(check.detail)}`);
      say(`${name} ${reply.ok ? 'is usable' : 'is not usable'} (${Math.round(reply.milliseconds)} ms)`);
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

async function bodyOf(
  api: ApiClient,
  { name, share, kind, set, configFile, credentialsFile, description }: { name: string } & Values<typeof registration>,
) {
  if (share !== undefined) {
    if ([kind, set, configFile, credentialsFile].some(given => given !== undefined))
      throw new LauncherError('--share takes kind, config and credentials of the backend that it shares', EXIT.data);
    return { name, share, description };
  }
  if (kind === undefined || (configFile === undefined && set === undefined))
    throw new LauncherError('give --kind, and --set or --config-file; or --share', EXIT.data);
  if (configFile === '-' && credentialsFile === '-')
    throw new LauncherError('standard input can be read once: give one of the two as a file', EXIT.data);
  const config = {
    ...(configFile === undefined ? {} : readJsonFile('--config-file', configFile)),
    ...(set === undefined ? {} : await configOf(api, kind, set)),
  };
  const credentials = credentialsFile === undefined ? {} : readJsonFile('--credentials-file', credentialsFile);
  return { name, kind, description, config, credentials: credentials as Record<string, string> };
}

const titleOf = ({ kind, title, description }: BackendKindReply): string[] =>
  [kind, title, description].map(part => printable(part));
const fieldsOf = ({ config, credentials }: BackendKindReply) => settingsOf({ properties: { config, credentials } });
const rowOf = ({ name, needed, meaning }: Setting): string[] => [name, needed, meaning].map(part => printable(part));

function holdsOf({ holds }: BackendReply): string {
  return Object.entries(holds)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${kind}`)
    .join(', ');
}
