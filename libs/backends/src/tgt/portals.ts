import { isIP } from 'node:net';
import { StorageError } from '#platform/errors';

/** Of `address:port` or `[address]:port`. */
export function splitPortal(portal: string): { address: string; port: number } {
  const at = portal.lastIndexOf(':');
  return { address: portal.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(portal.slice(at + 1)) };
}

/** As tgtd spells it. */
export function canonicalPortal(portal: string): string {
  const { address, port } = splitPortal(portal);
  const family = isIP(address);
  if (family === 0 || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new StorageError('internal', `portal ${portal}: expected address:port`, { retry: 'person' });
  }
  return family === 4 ? `${address}:${port}` : `${new URL(`http://[${address}]`).hostname}:${port}`;
}
