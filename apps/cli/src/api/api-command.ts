import { sessionRoutes } from '#admin/contract/session';
import { DEFAULT_TENANT } from '#tenancy/credentials/login-name';
import { type AddressOptions, findApi, isExposed } from './api-address.js';
import { ApiClient } from './api-client.js';

export interface ApiOptions extends AddressOptions {
  json?: boolean;
}
export interface TenantOptions extends ApiOptions {
  tenant?: string;
}

export async function withApi<T>(options: ApiOptions, work: (api: ApiClient) => Promise<T>): Promise<T> {
  const address = findApi(options);
  if (isExposed(address.url))
    process.stderr.write(`trivet: ${address.url} is not encrypted: whoever is on the way can read the token\n`);
  return work(new ApiClient(address));
}

export const inTenant = <T>(options: TenantOptions, work: (api: ApiClient, tenant: string) => Promise<T>): Promise<T> =>
  withApi(options, async api => work(api, options.tenant ?? (await ownTenant(api))));

async function ownTenant(api: ApiClient): Promise<string> {
  const { reply } = await api.call(sessionRoutes.me);
  return reply.appliance ? DEFAULT_TENANT : reply.tenant;
}
