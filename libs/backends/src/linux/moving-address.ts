/** An address that one of several hosts has: added to an interface by the program ip, and told to the neighbours. */
import { execFile } from 'node:child_process';
import { isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import { announce } from '#backends/linux/announce';
import { StorageError } from '#platform/errors';

const run = promisify(execFile);
const COMMAND_MS = 5_000;

export interface MovingAddress {
  address: string;
  prefixLength: number;
  /** The name of the interface. */
  device: string;
}

export const isHere = ({ address, device }: MovingAddress): boolean =>
  (networkInterfaces()[device] ?? []).some(found => found.address === address);

/** Whatever its interface. */
export const isHostAddress = (address: string): boolean =>
  Object.values(networkInterfaces()).some(all => all?.some(found => found.address === address));

/** As `ip address` takes it. */
export const withPrefix = ({ address, prefixLength }: MovingAddress): string => `${address}/${prefixLength}`;

/** There already: fine. */
export async function addAddress(moving: MovingAddress): Promise<void> {
  if (!isHere(moving)) {
    // Duplicate address detection would keep it from being used for a second; who had it has lost it.
    const options = isIPv6(moving.address) ? ['nodad'] : [];
    await ip(['address', 'add', withPrefix(moving), 'dev', moving.device, ...options], 'File exists');
  }
  announceAddress(moving);
}

/** Not there: fine. */
export async function removeAddress(moving: MovingAddress): Promise<void> {
  if (isHere(moving))
    await ip(['address', 'del', withPrefix(moving), 'dev', moving.device], 'Cannot assign requested address');
}

/** Neighbours that had it elsewhere come here from now on. */
export function announceAddress({ device, address }: MovingAddress): void {
  const found = (networkInterfaces()[device] ?? []).find(one => one.address === address);
  if (!found) return;
  try {
    announce(device, found.mac, address);
  } catch (error) {
    throw new StorageError('unavailable', `${address} cannot be announced on ${device}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

async function ip(args: readonly string[], harmless: string): Promise<void> {
  try {
    await run('ip', args, { timeout: COMMAND_MS, env: { PATH: '/usr/sbin:/sbin:/usr/bin:/bin', LC_ALL: 'C' } });
  } catch (error) {
    const { code, stderr = '' } = error as { code?: unknown; stderr?: string };
    if (stderr.includes(harmless)) return;
    const why = code === 'ENOENT' ? 'the program ip is not installed (Debian package iproute2)' : stderr.trim();
    throw new StorageError('unavailable', `ip ${args.join(' ')}: ${why || String(code)}`, { cause: error });
  }
}
