import { QUOTA_KEYS, type QuotaKey, type TenantReply, tenantRoutes } from '#admin/contract/tenants';
import type { ApiClient } from '../api/api-client.js';
import { EXIT } from '../api/api-error.js';
import { askTerminal } from '../api/confirm.js';
import { ago, bar, facts, printable, say, sayJson, showOne } from '../api/output.js';
import { choice, flag, initially, manyMaybe, noun, one, text } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { readBytes } from '../read-bytes.js';
import { table } from '../table.js';
import { listing, overApi } from './api-commands.js';
import { LABEL, NAME } from './options.js';
import { TENANT_PERFORMANCE } from './performance.js';

export const TENANT = noun('tenant', 'who is served: each with users, backends, sockets and quotas of its own', [
  listing('all tenants', '--state suspended', {
    route: tenantRoutes.list,
    most: 200,
    filters: {
      state: choice('state', ['active', 'suspended', 'draining'], 'only those'),
      search: text('text', 'part of the name, or of what it is shown as'),
    },
    none: 'no tenants yet: trivet tenant create NAME',
    columns: {
      NAME: row => row.name,
      STATE: row => row.state,
      AGE: row => ago(row.createdAt),
      'DISPLAY NAME': row => row.displayName,
    },
  }),
  overApi('create', 'make a tenant', 'acme --display-name "Acme Inc."', {
    args: { name: LABEL },
    options: { displayName: initially(text('text', 'for people'), '') },
    run: async ({ name, displayName, json }, api) => {
      const { reply } = await api.call(tenantRoutes.create, { body: { name, displayName } });
      const next = ['user', 'backend'].map(kind => `trivet ${kind} create NAME --tenant ${reply.name}`);
      showOne(reply, json, () => `${reply.name} is there; next: ${next.join(', ')}`);
    },
  }),
  overApi('show', 'one of them; of one that is being drained, what is left and what stands in the way', 'acme', {
    args: { name: NAME },
    run: async ({ name, json }, api) => {
      const { reply } = await api.call(tenantRoutes.get, { params: { tenant: name } });
      showOne(reply, json, () => describe(reply));
    },
  }),
  overApi('rename', 'show it to people as something else; its name stays', 'acme "Acme Ltd"', {
    args: { name: NAME, displayName: one('for people') },
    run: async ({ name, displayName, json }, api) => {
      const reply = await api.change(tenantRoutes, { tenant: name }, { displayName });
      showOne(reply, json, () => `${reply.name} is shown as ${reply.displayName || reply.name}`);
    },
  }),
  ...(
    [
      ['suspend', 'shut all its doors at once, and end its streams; what is under way ends', 'suspended'],
      ['resume', 'open its doors again', 'active'],
    ] as const
  ).map(([verb, about, state]) =>
    overApi(verb, about, 'acme', {
      args: { name: NAME },
      run: async ({ name, json }, api) => {
        const reply = await api.change(tenantRoutes, { tenant: name }, { state });
        showOne(reply, json, () => `${reply.name} is ${reply.state}`);
      },
    }),
  ),
  overApi('quota', 'what it may have, and has; with limits: set them', 'acme volumes=100 volume_bytes=2T', {
    args: {
      name: NAME,
      limits: manyMaybe(`KEY=LIMIT or KEY=none; keys: ${QUOTA_KEYS.join(', ')}; bytes also as 10GiB (or 10G) and 10GB`),
    },
    run: async ({ name: tenant, limits, json }, api) => {
      const body = Object.fromEntries(limits.map(parseLimit));
      // Exactly what is sent: a unit may have meant another one.
      for (const [key, limit] of Object.entries(body))
        if (!json && limit !== null && isBytes(key as QuotaKey)) say(`${key}: ${limit} bytes`);
      const { quotas: get, setQuotas: change } = tenantRoutes;
      const reply =
        limits.length === 0
          ? (await api.call(get, { params: { tenant } })).reply
          : await api.change({ get, change }, { tenant }, body);
      if (json) return sayJson(reply);
      const rows = QUOTA_KEYS.map(key => {
        const { limit, used } = reply[key];
        const shown = (value: string): string => (isBytes(key) ? humanBytes(value) : value);
        return [key, shown(used), limit === null ? 'none' : shown(limit), shareOf(used, limit)];
      });
      process.stdout.write(table(['QUOTA', 'USED', 'LIMIT', ''], rows));
    },
  }),
  overApi('delete', 'one that has nothing left; with --drain what it has goes first', 'acme --drain --confirm acme', {
    args: { name: NAME },
    options: {
      drain: flag('shut its doors and remove its accesses, buckets with their objects, volumes and hosts'),
      confirm: text('name', 'its name again; asked for at a terminal'),
    },
    run: ({ name, ...options }, api) => remove(api, name, options),
  }),
  TENANT_PERFORMANCE,
]);

function describe({ name, displayName, state, drain, createdAt, updatedAt }: TenantReply): string {
  const left = Object.entries(drain?.left ?? {}).filter(([, count]) => count > 0);
  const problems = (drain?.problems ?? []).map(({ problem, operationId, parked }, at): [string, string] => [
    at === 0 ? 'in the way' : '',
    `${problem}${parked ? '; waits for a person' : ''}: trivet operation show ${operationId}`,
  ]);
  return facts([
    ['name', name],
    ['shown as', displayName],
    ['state', state],
    ['left', drain && (left.map(([kind, count]) => `${count} ${kind}`).join(', ') || 'nothing')],
    ...problems,
    ['made', createdAt],
    ['changed', updatedAt],
  ]);
}

interface DeleteOptions {
  drain: boolean | undefined;
  confirm: string | undefined;
  json?: boolean;
}

async function remove(api: ApiClient, name: string, options: DeleteOptions): Promise<void> {
  const read = await api.call(tenantRoutes.get, { params: { tenant: name } });
  const confirm = options.confirm ?? (await askName(name, options.drain === true));
  if (confirm !== name) throw new LauncherError(`${printable(confirm)} is not ${name}: nothing was deleted`);
  const { status, location } = await api.call(tenantRoutes.delete, {
    params: { tenant: name },
    query: { drain: options.drain ? 'true' : 'false', confirm },
    ifMatch: read.etag,
  });
  const draining = status === 202;
  showOne({ name, state: draining ? 'draining' : 'deleted', location: location ?? null }, options.json, () =>
    draining
      ? `${name} is being drained; \`trivet tenant list --state draining\` shows it until it is gone`
      : `${name} is deleted`,
  );
}

async function askName(name: string, drain: boolean): Promise<string> {
  if (!process.stdin.isTTY) throw new LauncherError(`repeat the name: --confirm ${name}`, EXIT.data);
  const what = drain ? 'everything that it has, objects and volumes included' : 'it';
  return askTerminal(`This deletes ${what}, for good. Type the name of the tenant: `);
}

const isBytes = (key: QuotaKey): boolean => key.endsWith('_bytes');

/** `volumes=10`, `volume_bytes=2T`, `streams=none`. */
export function parseLimit(given: string): [QuotaKey, string | null] {
  const [, key, value] = /^(\w+)=([\w. ]+)$/.exec(given) ?? [];
  if (!QUOTA_KEYS.includes(key as QuotaKey))
    throw new LauncherError(`${given}: expected KEY=LIMIT with one of ${QUOTA_KEYS.join(', ')}`, EXIT.data);
  if (value === 'none') return [key as QuotaKey, null];
  const limit = isBytes(key as QuotaKey) ? readBytes(value!) : /^\d{1,19}$/.test(value!) ? value! : undefined;
  if (limit === undefined)
    throw new LauncherError(
      `${given}: expected a whole number${isBytes(key as QuotaKey) ? ', also with GiB (1024 each) or GB (1000 each) and the like' : ''}, or none`,
      EXIT.data,
    );
  return [key as QuotaKey, limit];
}

const WIDTH = 20;

function shareOf(used: string, limit: string | null): string {
  if (limit === null) return '';
  const share = limit === '0' ? 1 : Number(used) / Number(limit);
  return `${bar(share, WIDTH)} ${Math.round(share * 100)} %`;
}
