/**
 * An address that one of several hosts has: added to an interface by the program ip, and told to the neighbours. Beside the host's own
 * address in that network, which stays the one that its own connections come from: without a route of its own, and for IPv6
 * deprecated from the begin.
 */
import { execFile } from 'node:child_process';
import { isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import { announce } from '#backends/linux/announce';
import { isStorageError, StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';

const log = createLogger('addresses');
const run = promisify(execFile);
const COMMAND_MS = 3_000;

export interface MovingAddress {
  address: string;
  prefixLength: number;
  /** The name of the interface. */
  device: string;
}

/** Whatever its interface. */
export const isHostAddress = (address: string): boolean =>
  Object.values(networkInterfaces()).some(all => all?.some(found => found.address === asKernel(address)));

/** Whatever the length of their prefixes. */
export const isSameAddress = (one: MovingAddress, other: MovingAddress): boolean =>
  one.device === other.device && asKernel(one.address) === asKernel(other.address);

/** As `ip address` takes it. */
export const withPrefix = ({ address, prefixLength }: MovingAddress): string => `${asKernel(address)}/${prefixLength}`;

/** There already: fine. */
export async function addAddress(moving: MovingAddress): Promise<void> {
  if ((await placesOf(moving)).length === 0) {
    // Duplicate address detection would keep it from being used for a second; who had it has lost it.
    const options = isIPv6(moving.address) ? ['nodad', 'preferred_lft', '0'] : [];
    await change(moving, ['add', withPrefix(moving), 'dev', moving.device, 'noprefixroute', ...options], true);
  }
  announceAddress(moving);
}

/** Not there: fine. */
export async function removeAddress(moving: MovingAddress): Promise<void> {
  for (const place of await placesOf(moving)) await change(moving, ['del', place, 'dev', moving.device], false);
}

let silent: string | undefined;

/** Neighbours that had it elsewhere come here from now on. Where that is not allowed they find out by themselves, within a minute. */
export function announceAddress({ device, address }: MovingAddress): void {
  const wanted = asKernel(address);
  const found = (networkInterfaces()[device] ?? []).find(one => one.address === wanted);
  if (!found) return;
  try {
    announce(device, found.mac, wanted);
    silent = undefined;
  } catch (error) {
    const { message } = error as Error;
    if (message !== silent)
      log.warn({ device, address, reason: message }, 'neighbours are not told of an address: CAP_NET_RAW is missing');
    silent = message;
  }
}

/** `fd00:0::1` and `FD00::1` are one address. */
const asKernel = (address: string): string =>
  isIPv6(address) ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;

/** Where it is on its interface, with the prefix length that it has there. Node lists no interface without a carrier. */
async function placesOf({ address, device }: MovingAddress): Promise<string[]> {
  const { stdout } = await ip(['-json', 'address', 'show', 'dev', device]);
  const shown = JSON.parse(stdout || '[]') as { addr_info?: { local?: string; prefixlen?: number }[] }[];
  return shown
    .flatMap(({ addr_info = [] }) => addr_info)
    .filter(({ local }) => local === asKernel(address))
    .map(({ local, prefixlen }) => `${local}/${prefixlen}`);
}

/** Somebody else may have done it meanwhile: what counts is how it is afterwards. */
async function change(moving: MovingAddress, args: readonly string[], isThere: boolean): Promise<void> {
  try {
    await ip(['address', ...args]);
  } catch (error) {
    if (!isStorageError(error)) throw error;
    if ((await placesOf(moving)).length > 0 !== isThere) throw error;
  }
}

async function ip(args: readonly string[]): Promise<{ stdout: string }> {
  try {
    return await run('ip', args, { timeout: COMMAND_MS, env: { PATH: '/usr/sbin:/sbin:/usr/bin:/bin', LC_ALL: 'C' } });
  } catch (error) {
    const { code, stderr = '' } = error as { code?: unknown; stderr?: string };
    const why = code === 'ENOENT' ? 'the program ip is not installed (Debian package iproute2)' : stderr.trim();
    throw new StorageError('unavailable', `ip ${args.join(' ')}: ${why || String(code)}`, { cause: error });
  }
}
