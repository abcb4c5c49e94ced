/**
 * Nodes of HPE's driver are told addresses, ping them, and discover targets at port 3260 of one: an address with a port
 * behind it is none to them, and another port is never tried.
 */
const NODE_PORT = ':3260';
const isForNodes = (portal: string): boolean => portal.endsWith(NODE_PORT) && !/^(0\.0\.0\.0|\[::\]):/.test(portal);
const isLoopback = (portal: string): boolean => /^(127\.|\[::1\]|localhost:)/.test(portal);

/** For hosts on this host alone: tests, the demo, backups. Those take a port as well. */
export const isLocal = (portals: readonly string[]): boolean => portals.every(isLoopback);

export const servesNodes = (portals: readonly string[]): boolean => portals.some(isForNodes);

/** Where hosts discover targets; they learn of further portals there. */
export function discoveryIps(portals: readonly string[]): string[] {
  const addresses = portals.filter(isForNodes).map(portal => portal.slice(0, -NODE_PORT.length));
  return addresses.length > 0 ? addresses.map(address => address.replace(/^\[|\]$/g, '')) : [...portals];
}

export const nodesCannotCome = (portals: readonly string[]): string =>
  `is served at ${portals.join(', ')}, and nodes of HPE's driver come to port 3260 of an address alone`;
export const SERVE_NODES = 'serve it at port 3260 of an address of its own (docs/volumes.md, Pools)';
