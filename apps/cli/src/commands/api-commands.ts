import type { ReplyOf, RouteContract } from '#admin/contract/route';
import type { ApiClient } from '../api/api-client.js';
import { type ApiOptions, inTenant, type TenantOptions, withApi } from '../api/api-command.js';
import { listed, type Page, type Shape, showOne, showPage } from '../api/output.js';
import { showList } from '../api/watch-list.js';
import {
  type Arguments,
  type Command,
  command,
  type Definition,
  type None,
  type Options,
  UsageError,
  type Values,
} from '../command-line/command.js';
import { ALL_TENANTS, limit, NAME, OF_TENANT, OUTPUT, OVER_API, reason, WATCH } from './options.js';

type Asking<Args, Opts, Asked, More extends readonly unknown[]> = Omit<Definition<Args, Opts>, 'run'> & {
  run(given: Values<Args> & Values<Opts> & Asked, api: ApiClient, ...more: More): unknown;
  runOffline?(given: Values<Args> & Values<Opts> & Asked): unknown;
};

/** A command that asks the API. */
export const overApi = <const Args extends Arguments = None, const Opts extends Options = None>(
  verb: string,
  about: string,
  example: string,
  { run, runOffline, ...rest }: Asking<Args, Opts, ApiOptions, []>,
): Command =>
  command(verb, about, example, {
    ...rest,
    options: { ...rest.options, ...OVER_API },
    run: given => (given.offline ? runOffline!(given as never) : withApi(given, async api => run(given as never, api))),
  });

/** A command that asks the API about one tenant. */
export const ofTenant = <const Args extends Arguments = None, const Opts extends Options = None>(
  verb: string,
  about: string,
  example: string,
  { run, runOffline, ...rest }: Asking<Args, Opts, TenantOptions, [tenant: string]>,
): Command =>
  command(verb, about, example, {
    ...rest,
    options: { ...rest.options, ...OF_TENANT },
    run: given =>
      given.offline
        ? runOffline!(given as never)
        : inTenant(given, async (api, tenant) => run(given as never, api, tenant)),
  });

/** A command that lists what a tenant has; what all have with `--all-tenants`, and then `tenant` is undefined. */
export const ofTenants = <const Opts extends Options>(
  verb: string,
  about: string,
  example: string,
  options: Opts,
  run: (given: Values<Opts> & TenantOptions, api: ApiClient, tenant: string | undefined) => unknown,
): Command =>
  command(verb, about, example, {
    options: { ...options, allTenants: ALL_TENANTS, ...OF_TENANT },
    run: given => {
      const { allTenants, ...asked } = given as Values<Opts> & TenantOptions & { allTenants?: boolean };
      if (!allTenants) return inTenant(asked, async (api, tenant) => run(asked as never, api, tenant));
      if (asked.tenant !== undefined) throw new UsageError('--tenant and --all-tenants: give one of the two');
      return withApi(asked, async api => run(asked as never, api, undefined));
    },
  });

/** Whose each item is, before all else. */
export const withTenant = <T>(columns: Readonly<Record<string, (item: T) => string>>) => ({
  TENANT: (item: T) => (item as { tenant: string }).tenant,
  ...columns,
});

type ItemOf<R extends RouteContract> = ReplyOf<R> extends { items: readonly (infer Item)[] } ? Item : never;

interface Listing<R extends RouteContract, Opts> {
  verb?: string;
  route: R;
  /** The list of all tenants, with `--all-tenants`. */
  ofAll?: RouteContract;
  /** How many without `--limit`; absent: the API gives all of them at once. */
  most?: number;
  /** Said when there are none: the next command. */
  none: string;
  columns: Readonly<Record<string, (item: ItemOf<R>) => string>>;
  /** By their names in the query. */
  filters?: Opts;
  query?(filters: Record<string, string>): Record<string, string>;
  offline?: readonly string[];
  runOffline?(given: Values<Opts> & TenantOptions & { limit: number }): Promise<{ items: ItemOf<R>[] }>;
}

type Asked = ApiOptions & Shape & { watch?: boolean; limit?: number };

/** A table for people of what a route lists. */
export function listing<R extends RouteContract, const Opts extends Options = None>(
  about: string,
  example: string,
  { verb = 'list', route, ofAll, most, none, columns, filters, query, offline, runOffline }: Listing<R, Opts>,
): Command {
  const asked = (given: object) => {
    const entries = Object.entries(given).filter(([name]) => Object.hasOwn(filters ?? {}, name));
    const named = Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
    return query ? query(named) : named;
  };
  const definition = {
    options: { ...filters, ...(most === undefined ? {} : { limit: limit(most) }), output: OUTPUT, watch: WATCH },
    ...(offline && { offline }),
    run: ({ json, output, watch, ...given }: Asked, api: ApiClient, tenant?: string) => {
      const sent = { query: asked(given), ...(tenant === undefined ? {} : { params: { tenant } }) } as never;
      const read = async () =>
        (most === undefined
          ? (await api.call(route, sent)).reply
          : await listed(api, route as never, sent, given.limit!)) as Page<ItemOf<R>>;
      const whose = tenant ?? (sent as { query: { tenant?: string } }).query.tenant;
      return showList(api, read, { json, output, watch, tenant: whose, none, columns });
    },
    runOffline: async (given: never) => {
      const { json, output } = given as Asked;
      showPage(await runOffline!(given), { json, output, none, columns });
    },
  };
  if (ofAll)
    return ofTenants(verb, about, example, definition.options, async (given, api, tenant) => {
      if (tenant !== undefined) return definition.run(given as never, api, tenant);
      const { limit: many, json, output, watch } = given as unknown as Asked & { limit: number };
      const sent = { query: asked(given) } as never;
      const read = async () =>
        most === undefined ? (await api.call(ofAll as never, sent)).reply : listed(api, ofAll as never, sent, many);
      const shown = { json, output, watch, tenant: undefined, none, columns: withTenant(columns) };
      return showList<ItemOf<R>>(api, read as never, shown);
    });
  return route.access.scope === 'tenant'
    ? ofTenant(verb, about, example, definition)
    : overApi(verb, about, example, definition);
}

/** The last parameter of its path. */
const named = ({ path }: RouteContract, tenant: string, name: string) => {
  const [, parameter] = /\{(\w+)\}$/.exec(path)!;
  return { tenant, [parameter!]: name };
};

/** Deletes a thing of a tenant, by its name. */
export const deletion = (
  about: string,
  example: string,
  routes: { get?: RouteContract; delete: RouteContract },
  options: Partial<Definition<None, None>> = {},
): Command =>
  ofTenant('delete', about, example, {
    ...options,
    args: { name: NAME },
    run: async ({ name, json }, api, tenant) => {
      const params = named(routes.delete, tenant, name) as never;
      await api.change({ ...routes, change: routes.delete }, params, undefined as never);
      showOne({ name, state: 'deleted' }, json, () => `${name} is deleted`);
    },
  });

/** A verb for each state that people give to a thing of a tenant. */
export const states = <R extends RouteContract>(
  routes: { get: RouteContract; change: R },
  example: string,
  said: (reply: ReplyOf<R>) => string,
  verbs: readonly (readonly [verb: string, about: string, state: string])[],
): Command[] =>
  verbs.map(([verb, about, state]) =>
    ofTenant(verb, about, example, {
      args: { name: NAME },
      options: { reason },
      run: async (given, api, tenant) => {
        const params = named(routes.change, tenant, given.name) as never;
        const reply = await api.change(routes, params, { state, reason: given.reason } as never);
        showOne(reply, given.json, () => said(reply));
      },
    }),
  );
