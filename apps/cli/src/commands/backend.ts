import type { Command } from 'commander';
import { type BackendKindReply, type BackendReply, backendRoutes } from '#admin/contract/backends';
import type { ApiClient } from '../api/api-client.js';
import { type ApiOptions, inTenant, ofTenant, overApi, type TenantOptions, withApi } from '../api/api-command.js';
import { EXIT } from '../api/api-error.js';
import { readJsonFile } from '../api/json-file.js';
import { limitOf, listed, printable, say, sayJson, showOne, showPage } from '../api/output.js';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { table } from '../table.js';
import { collectSetting, configOf, kindsOf, type Setting, settingsOf } from './backend-settings.js';

interface AddOptions extends TenantOptions {
  kind?: string;
  share?: string;
  set?: Record<string, string>;
  configFile?: string;
  credentialsFile?: string;
  description: string;
}

export function register(program: Command): void {
  const backend = program.command('backend').description('where objects and volumes are kept');
  const command = (name: string, description: string): Command =>
    ofTenant(backend.command(name).description(description));

  command('list', 'backends of a tenant; --tenant appliance: those that can be shared')
    .option('--limit <n>', 'how many', limitOf, 200)
    .action((options: TenantOptions & { limit: number }) =>
      inTenant(options, async (api, tenant) =>
        showPage(
          await listed<BackendReply, typeof backendRoutes.list>(
            api,
            backendRoutes.list,
            { params: { tenant } },
            options.limit,
          ),
          {
            json: options.json,
            none: 'no backends yet: trivet backend add NAME',
            columns: {
              NAME: row => row.name,
              KIND: row => (row.shared ? `${row.kind}, shared` : row.kind),
              STATE: row => row.state,
              HEALTH: row => row.health.state,
              HOLDS: holdsOf,
              USED: row =>
                row.capacity ? `${humanBytes(row.capacity.used)} of ${humanBytes(row.capacity.total)}` : '',
              REASON: row => row.health.reason ?? '',
            },
          },
        ),
      ),
    );
  overApi(backend.command('kinds').description('kinds of backend, and what each is configured by'))
    .argument('[kind]', 'that one with all its fields')
    .action((kind: string | undefined, options: ApiOptions) =>
      withApi(options, async api => {
        const kinds = (await kindsOf(api)).filter(known => kind === undefined || known.kind === kind);
        if (kinds.length === 0) throw new LauncherError(`there is no kind ${kind}: trivet backend kinds`, EXIT.data);
        if (options.json) return sayJson({ items: kinds });
        process.stdout.write(
          kind === undefined
            ? table(['KIND', 'TITLE', 'FOR'], kinds.map(titleOf))
            : table(['FIELD', 'NEEDED', 'MEANING'], fieldsOf(kinds[0]!).map(rowOf)),
        );
      }),
    );
  command('add', 'register one, or share one of the appliance')
    .argument('<name>', 'small letters, digits and -')
    .option('--kind <kind>', 'rgw, reflink, ...: trivet backend kinds')
    .option('--set <field=value>', 'a setting of its kind; again for each', collectSetting)
    .option('--config-file <file>', 'its settings in JSON; - is standard input; --set goes over it')
    .option('--credentials-file <file>', 'its keys in JSON; - is standard input')
    .option('--share <name>', 'a backend of the tenant `appliance`, instead of the four above')
    .option('--description <text>', 'for people', '')
    .action((name: string, options: AddOptions) =>
      inTenant(options, async (api, tenant) => {
        const { reply } = await api.call(backendRoutes.create, {
          params: { tenant },
          body: await bodyOf(api, name, options),
        });
        showOne(
          reply,
          options.json,
          () => `${reply.name} is registered; next: trivet backend test ${reply.name} --tenant ${tenant}`,
        );
      }),
    );
  command('test', 'ask it whether it answers, knows us and can do what is needed; changes nothing there')
    .argument('<name>')
    .action((name: string, options: TenantOptions) =>
      inTenant(options, async (api, tenant) => {
        const { reply } = await api.call(backendRoutes.test, { params: { tenant, backend: name } });
        process.exitCode = reply.ok ? 0 : EXIT.refused;
        if (options.json) return sayJson(reply);
        for (const check of reply.checks)
          say(`${check.ok ? 'ok  ' : 'fail'}  ${check.name}: ${printable(check.detail)}`);
        say(`${name} ${reply.ok ? 'is usable' : 'is not usable'} (${Math.round(reply.milliseconds)} ms)`);
      }),
    );
  state(command('cordon', 'make nothing new there'), 'cordoned');
  state(command('drain', 'the same, until it holds nothing'), 'draining');
  state(command('uncordon', 'take it back'), 'active');
  command('remove', 'forget one that holds nothing of ours')
    .argument('<name>')
    .action((name: string, options: TenantOptions) =>
      inTenant(options, async (api, tenant) => {
        const params = { tenant, backend: name };
        const { etag } = await api.call(backendRoutes.get, { params });
        await api.call(backendRoutes.delete, { params, ifMatch: etag });
        showOne({ name, state: 'removed' }, options.json, () => `${name} is forgotten`);
      }),
    );
}

function state(command: Command, wanted: BackendReply['state']): void {
  command
    .argument('<name>')
    .option('--reason <text>', 'why; kept in the audit log')
    .action((name: string, { reason, ...options }: TenantOptions & { reason?: string }) =>
      inTenant(options, async (api, tenant) => {
        const params = { tenant, backend: name };
        const { etag } = await api.call(backendRoutes.get, { params });
        const body = { state: wanted, ...(reason === undefined ? {} : { reason }) };
        const { reply } = await api.call(backendRoutes.change, { params, body, ifMatch: etag });
        showOne(reply, options.json, () => `${reply.name} is ${reply.state}; it holds ${holdsOf(reply) || 'nothing'}`);
      }),
    );
}

async function bodyOf(
  api: ApiClient,
  name: string,
  { share, kind, set, configFile, credentialsFile, description }: AddOptions,
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
  [kind, title, description].map(text => printable(text));
const fieldsOf = ({ config, credentials }: BackendKindReply) => settingsOf({ properties: { config, credentials } });
const rowOf = ({ name, needed, meaning }: Setting): string[] => [name, needed, meaning].map(text => printable(text));

function holdsOf({ holds }: BackendReply): string {
  return Object.entries(holds)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${kind}`)
    .join(', ');
}
