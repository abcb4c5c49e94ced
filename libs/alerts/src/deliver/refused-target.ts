import { PAGERDUTY, type Target } from '#alerts/messages/target';
import { type OuterAddresses, RefusedAddress } from '#platform/config/outer-addresses';

/**
 * Why nothing may be sent there, for whoever says that it should; undefined: nothing is against it. A name that does not resolve now
 * is judged whenever something is sent.
 */
export async function refusedTarget(outer: OuterAddresses, target: Target): Promise<string | undefined> {
  const url = 'url' in target ? target.url : target.kind === 'pagerduty' ? PAGERDUTY[target.region] : undefined;
  const { protocol, hostname, username, password } = new URL(url ?? `smtp://${hostIn(target)}`);
  if (username !== '' || password !== '') return 'an address with a name or password in it is not taken';
  try {
    const address = await outer.addressOf(hostname);
    if (protocol === 'http:' && !outer.isOwn(address))
      return `${hostname} would be reached over http: only networks of TRIVET_ALERT_NETWORKS are`;
    if (target.kind === 'smtp' && target.security === 'none' && !outer.isOwn(address))
      return `${hostname} would be reached without TLS: only networks of TRIVET_ALERT_NETWORKS are`;
    return undefined;
  } catch (error) {
    return error instanceof RefusedAddress ? error.message : undefined;
  }
}

/** An address of IPv6 as a URL has it. */
const hostIn = (target: Target): string => {
  const { host } = target as Extract<Target, { kind: 'smtp' }>;
  return host.includes(':') ? `[${host}]` : host;
};
