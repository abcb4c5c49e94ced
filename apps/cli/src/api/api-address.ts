import { EXIT_CONFIG } from '#platform/config/config';
import { readCredentials } from '../credentials.js';
import { settings } from '../environment.js';
import { Home, LauncherError } from '../home.js';
import { livingState } from '../state.js';
import { readGiven } from './given-file.js';

/** Where the API is, and what it is asked with. */
export interface ApiAddress {
  /** Without a slash at its end. */
  url: string;
  token: string;
}

export interface AddressOptions {
  url?: string;
  tokenFile?: string;
}

/** Options first, then the environment, then the appliance that runs in this home. */
export function findApi(options: AddressOptions): ApiAddress {
  const url = findUrl(options);
  const tokenFile = options.tokenFile ?? given('TRIVET_ADMIN_TOKEN_FILE');
  if (tokenFile !== undefined) return { url, token: readGiven(tokenFile, undefined, EXIT_CONFIG).trim() };
  if (url === homeUrl()) {
    const token = readCredentials(Home.find()!).admin?.token;
    if (token !== undefined) return { url, token };
  }
  throw new LauncherError(
    `no API token for ${url}: give its file by --token-file or TRIVET_ADMIN_TOKEN_FILE; \`trivet token create NAME --login USER\` makes one`,
    EXIT_CONFIG,
  );
}

/** Whether it is the API of the appliance that runs in this home. */
export const isOwnApi = (options: AddressOptions): boolean => findUrl(options) === homeUrl();

/** Whether any address is known. */
export const knowsApi = (options: AddressOptions): boolean =>
  (options.url ?? given('TRIVET_ADMIN_URL') ?? homeUrl()) !== undefined;

export function findUrl(options: Pick<AddressOptions, 'url'>): string {
  const url = options.url ?? given('TRIVET_ADMIN_URL') ?? homeUrl();
  if (url === undefined)
    throw new LauncherError(
      'no address of the API: nothing runs here (`trivet up --detach` starts it), and neither --url nor TRIVET_ADMIN_URL names one elsewhere',
      EXIT_CONFIG,
    );
  if (!/^https?:\/\/[^/\s]+(\/\S*)?$/.test(url))
    throw new LauncherError(`${url} is no address of an API: expected https://host:port`, EXIT_CONFIG);
  return url.replace(/\/+$/, '');
}

/** An empty one is none, as everywhere. */
const given = (name: string): string | undefined => settings()[name] || undefined;

/** Of the gateway of this home. */
function homeUrl(): string | undefined {
  const home = Home.find();
  const state = home && livingState(home);
  const listen = state === undefined || state.partsOnly ? undefined : state.env.TRIVET_HTTP_LISTEN;
  return listen && `http://${listen.replace(/^(0\.0\.0\.0|\[::\]):/, '127.0.0.1:')}`;
}

/** A token that goes over a network in the clear is everybody's. */
export function isExposed(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}
