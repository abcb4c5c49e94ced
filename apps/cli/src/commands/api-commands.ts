import type { ReplyOf, RouteContract } from '#admin/contract/route';
import type { ApiClient } from '../api/api-client.js';
import { type ApiOptions, inTenant, type TenantOptions, withApi } from '../api/api-command.js';
import { listed, type Page, showOne, showPage } from '../api/output.js';
import {
  type Arguments,
  type Command,
  command,
  type Definition,
  type None,
  type Options,
  type Values,
} from '../command-line/command.js';
import { limit, NAME, OF_TENANT, OVER_API, reason } from './options.js';

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

type ItemOf<R extends RouteContract> = ReplyOf<R> extends { items: readonly (infer Item)[] } ? Item : never;

interface Listing<R extends RouteContract, Opts> {
  verb?: string;
  route: R;
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

/** A table for people of what a route lists. */
export function listing<R extends RouteContract, const Opts extends Options = None>(
  about: string,
  example: string,
  { verb = 'list', route, most, none, columns, filters, query, offline, runOffline }: Listing<R, Opts>,
): Command {
  const show = (page: unknown, json: boolean | undefined) =>
    showPage(page as Page<ItemOf<R>>, { json: json ?? false, none, columns });
  const asked = (given: object) => {
    const entries = Object.entries(given).filter(([name]) => Object.hasOwn(filters ?? {}, name));
    const named = Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
    return query ? query(named) : named;
  };
  const definition = {
    options: { ...filters, ...(most === undefined ? {} : { limit: limit(most) }) },
    ...(offline && { offline }),
    run: async (given: ApiOptions & { limit?: number }, api: ApiClient, tenant?: string) => {
      const sent = { query: asked(given), ...(tenant === undefined ? {} : { params: { tenant } }) } as never;
      const page =
        most === undefined
          ? (await api.call(route, sent)).reply
          : await listed(api, route as never, sent, given.limit!);
      show(page, given.json);
    },
    runOffline: async (given: never) => show(await runOffline!(given), (given as ApiOptions).json),
  };
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
