/**
 * Where a registered address must not lead: to this host's own metadata service, and to links without a router, where such
 * services live (OWASP API7). Loopback and private networks are where object stores are.
 */
import { lookup as resolve } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { BlockList, isIP, isIPv6, type LookupFunction } from 'node:net';

const REFUSED = new BlockList();
REFUSED.addSubnet('169.254.0.0', 16, 'ipv4');
REFUSED.addSubnet('0.0.0.0', 8, 'ipv4');
REFUSED.addSubnet('224.0.0.0', 3, 'ipv4'); // multicast, reserved, broadcast
REFUSED.addAddress('100.100.100.200', 'ipv4'); // metadata of Alibaba Cloud
REFUSED.addAddress('192.0.0.192', 'ipv4'); // metadata of Oracle Cloud
REFUSED.addAddress('168.63.129.16', 'ipv4'); // what Azure tells its machines by
REFUSED.addSubnet('fe80::', 10, 'ipv6');
REFUSED.addSubnet('ff00::', 8, 'ipv6');
REFUSED.addAddress('::', 'ipv6');
REFUSED.addAddress('fd00:ec2::254', 'ipv6'); // metadata of AWS
REFUSED.addAddress('fd20:ce::254', 'ipv6'); // metadata of Google Cloud

/** Addresses of IPv4 that are written as IPv6 are judged as what they are. */
export function isRefusedAddress(address: string): boolean {
  if (!isIPv6(address)) return REFUSED.check(address, 'ipv4');
  const plain = new URL(`http://[${address.replace(/%.*$/, '')}]`).hostname.slice(1, -1);
  const words = /^(?:::ffff:|64:ff9b::|::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(plain);
  if (words) {
    const bits = (Number.parseInt(words[1]!, 16) << 16) | Number.parseInt(words[2]!, 16);
    const octets = [24, 16, 8, 0].map(shift => (bits >>> shift) & 255);
    if (REFUSED.check(octets.join('.'), 'ipv4')) return true;
  }
  return REFUSED.check(plain, 'ipv6');
}

/** Why this URL may not be registered; undefined when it may. A name that does not resolve now is judged at each connection. */
export async function refusedUrl(text: string): Promise<string | undefined> {
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return 'put keys into credentials, not into the address';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const found = isIP(host)
    ? [host]
    : await lookup(host, { all: true }).then(
        all => all.map(one => one.address),
        () => [],
      );
  const refused = found.find(isRefusedAddress);
  return refused && `${host} is ${refused === host ? '' : `${refused}, `}a link-local, metadata or multicast address`;
}

/** For agents of HTTP: what a name leads to is judged whenever it is connected to, since it may be another by then. */
export const guardedLookup: LookupFunction = (hostname, options, callback) => {
  resolve(hostname, options, (error, address, family) => {
    const found = Array.isArray(address) ? address.map(one => one.address) : [address];
    if (!error && found.some(isRefusedAddress)) {
      const refusal = new Error(`${hostname} leads to a link-local, metadata or multicast address`);
      callback(Object.assign(refusal, { code: 'EADDRNOTAVAIL' }), address, family);
    } else callback(error, address, family);
  });
};
