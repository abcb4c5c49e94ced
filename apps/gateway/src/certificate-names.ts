import { hostname } from 'node:os';
import type { Config } from '#platform/config/config';
import { ANYWHERE } from './self-signed.js';

type Settings = Pick<Config, 'TRIVET_HTTPS_LISTEN' | 'TRIVET_CBT_LISTEN' | 'TRIVET_CBT_PUBLIC_ADDRESS'>;

/**
 * What clients verify: where the TLS doors listen, and where sessions send their readers. All doors serve one certificate, so
 * each asks for the names of all.
 */
export function certificateNames(config: Settings): string[] {
  const { TRIVET_HTTPS_LISTEN: https, TRIVET_CBT_LISTEN: cbt } = config;
  const names = [...(https === 'none' ? [] : [https.host]), ...(cbt === 'none' ? [] : [cbt.host, readersHost(config)])];
  return [...new Set(names)].filter(name => !ANYWHERE.has(name));
}

/** Where readers reach the door for changed blocks; who listens everywhere is reached by the name of the host. */
export function readersHost({
  TRIVET_CBT_LISTEN: listen,
  TRIVET_CBT_PUBLIC_ADDRESS: address,
}: Omit<Settings, 'TRIVET_HTTPS_LISTEN'>): string {
  if (address !== undefined) return address.slice(0, address.lastIndexOf(':')).replace(/^\[|\]$/g, '');
  return listen === 'none' || ANYWHERE.has(listen.host) ? hostname() : listen.host;
}
