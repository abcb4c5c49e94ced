import { isIP } from 'node:net';

const ISCSI_PORT = 3260;

/** Where a publication's discovery address leads: an address alone, or `address:port` of a target for this host alone. */
export function portalAddress(discoveryIp: string): { host: string; port: number } {
  if (isIP(discoveryIp)) return { host: discoveryIp, port: ISCSI_PORT };
  const [, host = discoveryIp, port] = /^(.*?)(?::(\d+))?$/.exec(discoveryIp) ?? [];
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port ?? ISCSI_PORT) };
}
