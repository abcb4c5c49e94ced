/**
 * Where messages to people may go: to public addresses, and to networks of one's own that the settings name. Stricter than what a
 * backend may have (address-rules.ts): who may say where an alert goes must not reach what is behind the firewall by it.
 */
import { lookup as resolve } from 'node:dns';
import { BlockList, isIP, isIPv6, type LookupFunction } from 'node:net';
import { isRefusedAddress } from '#platform/config/address-rules';

/** Of IPv4: what is no public unicast (IANA's registry of special-purpose addresses, RFC 6890), with multicast and reserved. */
const INNER = new BlockList();
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const)
  INNER.addSubnet(network, bits, 'ipv4');

/** Of IPv6 only this is given out for public use, but for the parts below: tunnels, benchmarks, documentation. */
const PUBLIC = new BlockList();
PUBLIC.addSubnet('2000::', 3, 'ipv6');
const NOT_PUBLIC = new BlockList();
NOT_PUBLIC.addSubnet('2001::', 23, 'ipv6');
NOT_PUBLIC.addSubnet('2001:db8::', 32, 'ipv6');
NOT_PUBLIC.addSubnet('2002::', 16, 'ipv6');
NOT_PUBLIC.addSubnet('3fff::', 20, 'ipv6');

export interface Network {
  address: string;
  bits: number;
}

export class OuterAddresses {
  private readonly allowed = new BlockList();

  /** @param allowed networks of one's own; links without a router, metadata services and multicast stay refused in them */
  constructor(allowed: readonly Network[] = []) {
    for (const { address, bits } of allowed) this.allowed.addSubnet(address, bits, isIPv6(address) ? 'ipv6' : 'ipv4');
  }

  /** Whether it is one of the networks that the settings name. */
  isOwn(address: string): boolean {
    return this.judged(address, (one, family) => this.allowed.check(one, family));
  }

  isRefused(address: string): boolean {
    if (isIP(address) === 0 || isRefusedAddress(address)) return true;
    if (this.isOwn(address)) return false;
    return this.judged(address, (one, family) =>
      family === 'ipv4' ? INNER.check(one, 'ipv4') : !PUBLIC.check(one, 'ipv6') || NOT_PUBLIC.check(one, 'ipv6'),
    );
  }

  /** As the connection is made to what it answers, a name that leads elsewhere a moment later changes nothing. */
  lookup(refuses: (address: string) => boolean = address => this.isRefused(address)): LookupFunction {
    return (hostname, options, callback) => {
      resolve(hostname, options, (error, address, family) => {
        const found = Array.isArray(address) ? address.map(one => one.address) : [address];
        const refused = error ? undefined : found.find(refuses);
        if (refused === undefined) callback(error, address, family);
        else callback(refusal(hostname, refused), address, family);
      });
    };
  }

  /** The address to connect to, which was checked; RefusedAddress, or what the resolver said. */
  async addressOf(
    host: string,
    refuses: (address: string) => boolean = address => this.isRefused(address),
  ): Promise<string> {
    const bare = withoutBrackets(host);
    if (isIP(bare) !== 0) {
      this.requireTaken(bare, refuses);
      return bare;
    }
    return new Promise((done, failed) => {
      this.lookup(refuses)(bare, { all: false }, (error, address) => (error ? failed(error) : done(address as string)));
    });
  }

  /** Of a host that is no name, and so is never looked up. */
  requireTaken(host: string, refuses: (address: string) => boolean = address => this.isRefused(address)): void {
    const bare = withoutBrackets(host);
    if (isIP(bare) !== 0 && refuses(bare)) throw refusal(bare, bare);
  }

  /** One of IPv4 that is written as IPv6 is judged as what it is. */
  private judged(address: string, judge: (address: string, family: 'ipv4' | 'ipv6') => boolean): boolean {
    if (!isIPv6(address)) return judge(address, 'ipv4');
    const plain = new URL(`http://[${address.replace(/%.*$/, '')}]`).hostname.slice(1, -1);
    const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(plain);
    if (!mapped) return judge(plain, 'ipv6');
    const bits = (Number.parseInt(mapped[1]!, 16) << 16) | Number.parseInt(mapped[2]!, 16);
    return judge([24, 16, 8, 0].map(shift => (bits >>> shift) & 255).join('.'), 'ipv4');
  }
}

export class RefusedAddress extends Error {}

const withoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, '');

const refusal = (host: string, address: string): RefusedAddress =>
  new RefusedAddress(
    `${host} ${host === address ? 'is' : `leads to ${address},`} an address that alerts must not be sent to; TRIVET_ALERT_NETWORKS may name its network`,
  );
