import { isIP } from 'node:net';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** A registered backend of a tenant. */
export interface BackendChoice {
  id: string;
  name: string;
  kind: string;
  config: { addresses?: unknown };
}

const BACKENDS = sql(
  'tenant_backends',
  'SELECT id, name, kind, config FROM trivet.backend WHERE tenant_id = $1 ORDER BY created_at, id',
);

/** Of all kinds, the oldest first. */
export const readBackends = (tx: Tx, tenantId: string): Promise<BackendChoice[]> =>
  tx.query<BackendChoice>(BACKENDS, [tenantId]);

/** The one that serves who names none, when a tenant has it. */
const USUAL = 'local';

/**
 * The backend that `array_ip` means: by name, or by one of the addresses that its registration lists; a port and the
 * brackets of an IPv6 address do not matter. '' is the one named `local`, else the oldest. It only selects: nothing is
 * ever connected to because a request names it (invariant T3).
 */
export function chooseBackend(backends: readonly BackendChoice[], arrayIp: string): BackendChoice | undefined {
  const wanted = arrayIp.trim();
  if (wanted === '') return backends.find(({ name }) => name === USUAL) ?? backends[0];
  const host = plainHost(wanted);
  return (
    backends.find(({ name }) => name === wanted) ??
    backends.find(({ config }) => addressesOf(config).some(address => plainHost(address) === host)) ??
    backends.find(({ name }) => name === host)
  );
}

const addressesOf = ({ addresses }: BackendChoice['config']): string[] =>
  Array.isArray(addresses) ? addresses.filter(address => typeof address === 'string') : [];

/** `192.0.2.1:443`, `[2001:DB8::1]:443`, `2001:db8:0::1` and `Array.example.org` in the one form that is compared. */
export function plainHost(text: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1];
  if (bracketed === undefined && isIP(text) !== 6) return text.replace(/:\d+$/, '').toLowerCase();
  const address = bracketed ?? text;
  return isIP(address) === 6 && !address.includes('%')
    ? new URL(`http://[${address}]`).hostname.slice(1, -1)
    : address.toLowerCase();
}
