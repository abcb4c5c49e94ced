import { call } from './client';

/** Where the provider sends browsers back to; the gateway has told it so. */
const RETURN_PATH = '/login/provider';
const BEFORE = 'trivet-before-login';

let answer = fromAddress();

/** What the provider has answered, once. */
export function takeAnswer(): string | undefined {
  const taken = answer;
  answer = undefined;
  return taken;
}

/** Leaves this page; it comes back where it was. */
export async function goToProvider(): Promise<void> {
  const { data } = await call('POST', '/session/provider', {});
  sessionStorage.setItem(BEFORE, window.location.href);
  window.location.assign(data.location);
}

/** Takes it out of the address, which people pass on; history takes no address of another page than this one. */
function fromAddress(): string | undefined {
  const { pathname, search } = window.location;
  if (pathname !== RETURN_PATH) return undefined;
  window.history.replaceState(null, '', sessionStorage.getItem(BEFORE) ?? '/');
  sessionStorage.removeItem(BEFORE);
  return search.slice(1) || undefined;
}
