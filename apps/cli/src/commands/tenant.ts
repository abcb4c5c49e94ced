import { createInterface } from 'node:readline/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { QUOTA_KEYS, type QuotaKey, type TenantReply, tenantRoutes } from '#admin/contract/tenants';
import type { ApiClient } from '../api/api-client.js';
import { type ApiOptions, overApi, withApi } from '../api/api-command.js';
import { EXIT } from '../api/api-error.js';
import { ago, limitOf, listed, printable, say, sayJson, showOne, showPage } from '../api/output.js';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { readBytes } from '../read-bytes.js';
import { table } from '../table.js';

export function register(program: Command): void {
  const tenant = program
    .command('tenant')
    .description('who is served: each with users, backends, sockets and quotas of its own');
  const command = (name: string, description: string): Command =>
    overApi(tenant.command(name).description(description));

  command('list', 'all tenants')
    .addOption(new Option('--state <state>', 'only those').choices(['active', 'suspended', 'draining']))
    .option('--search <text>', 'part of the name, or of what it is shown as')
    .option('--limit <n>', 'how many', limitOf, 200)
    .action((options: ApiOptions & { state?: TenantReply['state']; search?: string; limit: number }) =>
      withApi(options, async api =>
        showPage(
          await listed<TenantReply, typeof tenantRoutes.list>(
            api,
            tenantRoutes.list,
            { query: { state: options.state, search: options.search } },
            options.limit,
          ),
          {
            json: options.json,
            none: 'no tenants yet: trivet tenant create NAME',
            columns: {
              NAME: row => row.name,
              STATE: row => row.state,
              AGE: row => ago(row.createdAt),
              'DISPLAY NAME': row => row.displayName,
            },
          },
        ),
      ),
    );
  command('create', 'make a tenant')
    .argument('<name>', 'small letters, digits and -')
    .option('--display-name <text>', 'for people', '')
    .action((name: string, options: ApiOptions & { displayName: string }) =>
      withApi(options, async api => {
        const { reply } = await api.call(tenantRoutes.create, { body: { name, displayName: options.displayName } });
        showOne(
          reply,
          options.json,
          () =>
            `${reply.name} is there; next: trivet user add NAME --tenant ${reply.name}, trivet backend add NAME --tenant ${reply.name}`,
        );
      }),
    );
  command('suspend', 'shut all its doors at once, and end its streams; what is under way ends')
    .argument('<name>')
    .action((name: string, options: ApiOptions) => setState(name, 'suspended', options));
  command('resume', 'open its doors again')
    .argument('<name>')
    .action((name: string, options: ApiOptions) => setState(name, 'active', options));
  command('quota', 'what it may have, and has; with limits: set them')
    .argument('<name>')
    .argument(
      '[limits...]',
      `KEY=LIMIT or KEY=none; keys: ${QUOTA_KEYS.join(', ')}; bytes also as 10GiB (or 10G) and 10GB`,
    )
    .action((name: string, limits: string[], options: ApiOptions) =>
      withApi(options, async api => {
        const body = Object.fromEntries(limits.map(parseLimit));
        // Exactly what is sent: a unit may have meant another one.
        for (const [key, limit] of Object.entries(body))
          if (!options.json && limit !== null && isBytes(key as QuotaKey)) say(`${key}: ${limit} bytes`);
        const read = await api.call(tenantRoutes.quotas, { params: { tenant: name } });
        const { reply } =
          limits.length === 0
            ? read
            : await api.call(tenantRoutes.setQuotas, { params: { tenant: name }, body, ifMatch: read.etag });
        if (options.json) return sayJson(reply);
        const rows = QUOTA_KEYS.map(key => {
          const { limit, used } = reply[key];
          const shown = (value: string): string => (isBytes(key) ? humanBytes(value) : value);
          return [key, shown(used), limit === null ? 'none' : shown(limit), bar(used, limit)];
        });
        process.stdout.write(table(['QUOTA', 'USED', 'LIMIT', ''], rows));
      }),
    );
  command('delete', 'one that has nothing left; with --drain what it has goes first')
    .argument('<name>')
    .option('--drain', 'shut its doors and remove its accesses, buckets with their objects, volumes and hosts')
    .option('--confirm <name>', 'its name again; asked for at a terminal')
    .action((name: string, options: ApiOptions & { drain?: boolean; confirm?: string }) =>
      withApi(options, async api => remove(api, name, options)),
    );
}

const setState = (name: string, state: 'active' | 'suspended', options: ApiOptions): Promise<void> =>
  withApi(options, async api => {
    const { etag } = await api.call(tenantRoutes.get, { params: { tenant: name } });
    const { reply } = await api.call(tenantRoutes.change, { params: { tenant: name }, body: { state }, ifMatch: etag });
    showOne(reply, options.json, () => `${reply.name} is ${reply.state}`);
  });

async function remove(api: ApiClient, name: string, options: ApiOptions & { drain?: boolean; confirm?: string }) {
  const read = await api.call(tenantRoutes.get, { params: { tenant: name } });
  const confirm = options.confirm ?? (await askName(name, options.drain === true));
  if (confirm !== name) throw new LauncherError(`${printable(confirm)} is not ${name}: nothing was deleted`);
  const { status, location } = await api.call(tenantRoutes.delete, {
    params: { tenant: name },
    query: { drain: options.drain ? 'true' : 'false', confirm },
    ifMatch: read.etag,
  });
  if (options.json)
    return sayJson({ name, state: status === 202 ? 'draining' : 'deleted', location: location ?? null });
  say(
    status === 202
      ? `${name} is being drained; \`trivet tenant list --state draining\` shows it until it is gone`
      : `${name} is deleted`,
  );
}

async function askName(name: string, drain: boolean): Promise<string> {
  if (!process.stdin.isTTY) throw new LauncherError(`repeat the name: --confirm ${name}`, EXIT.data);
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const what = drain ? 'everything that it has, objects and volumes included' : 'it';
    return (await asking.question(`This deletes ${what}, for good. Type the name of the tenant: `)).trim();
  } finally {
    asking.close();
  }
}

const isBytes = (key: QuotaKey): boolean => key.endsWith('_bytes');

/** `volumes=10`, `volume_bytes=2T`, `streams=none`. */
export function parseLimit(text: string): [QuotaKey, string | null] {
  const [, key, value] = /^(\w+)=([\w. ]+)$/.exec(text) ?? [];
  if (!QUOTA_KEYS.includes(key as QuotaKey))
    throw new InvalidArgumentError(`${text}: expected KEY=LIMIT with one of ${QUOTA_KEYS.join(', ')}`);
  if (value === 'none') return [key as QuotaKey, null];
  const limit = isBytes(key as QuotaKey) ? readBytes(value!) : /^\d{1,19}$/.test(value!) ? value! : undefined;
  if (limit === undefined)
    throw new InvalidArgumentError(
      `${text}: expected a whole number${isBytes(key as QuotaKey) ? ', also with GiB (1024 each) or GB (1000 each) and the like' : ''}, or none`,
    );
  return [key as QuotaKey, limit];
}

const WIDTH = 20;

function bar(used: string, limit: string | null): string {
  if (limit === null) return '';
  const share = limit === '0' ? 1 : Number(used) / Number(limit);
  const filled = Math.min(WIDTH, Math.round(share * WIDTH));
  return `[${'█'.repeat(filled)}${'·'.repeat(WIDTH - filled)}] ${Math.round(share * 100)} %`;
}
