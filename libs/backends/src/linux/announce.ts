/**
 * Tells the neighbours of an interface whose an address is now: by ARP in an Ethernet frame to all (RFC 5227, section 3: a request
 * and a reply, since some heed only one of the two), for IPv6 by an unsolicited neighbour advertisement to all nodes (RFC 4861,
 * section 7.2.6). Node has no sockets of that kind.
 */
import { isIPv4 } from 'node:net';
import { type ForeignLibrary, foreignError, koffi, openLibrary } from '#backends/linux/foreign';

const AF_PACKET = 17;
const SOCK_RAW = 3;
const ETHERNET = { arp: 0x0806, ipv6: 0x86dd } as const;
const EVERYBODY = Buffer.alloc(6, 0xff);
const NOBODY = Buffer.alloc(6);
const ALL_NODES = '33:33:00:00:00:01';

let library: ForeignLibrary | undefined;

/** @throws EPERM without CAP_NET_RAW */
export function announce(device: string, mac: string, address: string): void {
  const frames = isIPv4(address)
    ? [arpFrame(1, mac, address), arpFrame(2, mac, address)]
    : [advertisementFrame(mac, address)];
  library ??= openLibrary('libc.so.6');
  const libc = library;
  const index = libc.now<number>('unsigned int if_nametoindex(const char *name)', device);
  const socket = libc.now<number>('int socket(int family, int type, int protocol)', AF_PACKET, SOCK_RAW, 0);
  if (socket < 0) throw foreignError('socket AF_PACKET', -koffi().errno());
  try {
    for (const frame of frames) {
      const send =
        'int64_t sendto(int fd, void *data, size_t length, int flags, void *address, uint32_t addressLength)';
      const to = linkAddress(index, frame);
      libc.now(send, socket, frame, frame.length, 0, to, to.length);
    }
  } finally {
    libc.now('int close(int fd)', socket);
  }
}

/** struct sockaddr_ll. */
function linkAddress(index: number, frame: Buffer): Buffer {
  const to = Buffer.alloc(20);
  to.writeUInt16LE(AF_PACKET, 0);
  frame.copy(to, 2, 12, 14);
  to.writeInt32LE(index, 4);
  to[11] = 6;
  frame.copy(to, 12, 0, 6);
  return to;
}

const bytesOf = (mac: string): Buffer => Buffer.from(mac.replaceAll(':', ''), 'hex');

/** @param operation 1: a request, 2: a reply; sender and target are the same address */
export function arpFrame(operation: 1 | 2, mac: string, address: string): Buffer {
  const [own, ip] = [bytesOf(mac), Buffer.from(address.split('.').map(Number))];
  const head = Buffer.alloc(2);
  head.writeUInt16BE(ETHERNET.arp);
  // Ethernet, IPv4, their lengths.
  const kind = Buffer.from([0, 1, 8, 0, 6, 4, 0, operation]);
  const frame = Buffer.concat([EVERYBODY, own, head, kind, own, ip, operation === 1 ? NOBODY : EVERYBODY, ip]);
  return Buffer.concat([frame], 60);
}

export function advertisementFrame(mac: string, address: string): Buffer {
  const [own, source] = [bytesOf(mac), sixteenBytes(address)];
  const destination = sixteenBytes('ff02::1');
  // Type 136; flag: override what was known; the address; option 2: its link-layer address.
  const message = Buffer.concat([Buffer.from([136, 0, 0, 0, 0x20, 0, 0, 0]), source, Buffer.from([2, 1]), own]);
  message.writeUInt16BE(checksum(source, destination, message), 2);
  const header = Buffer.alloc(8);
  header.writeUInt32BE(0x60000000, 0);
  header.writeUInt16BE(message.length, 4);
  // ICMPv6; receivers heed no other hop limit than this.
  header[6] = 58;
  header[7] = 255;
  const type = Buffer.alloc(2);
  type.writeUInt16BE(ETHERNET.ipv6);
  return Buffer.concat([bytesOf(ALL_NODES), own, type, header, source, destination, message]);
}

function sixteenBytes(address: string): Buffer {
  const [head = '', tail] = address.split('::');
  const words = (part: string): number[] => (part === '' ? [] : part.split(':').map(word => Number.parseInt(word, 16)));
  const [before, after] = [words(head), tail === undefined ? [] : words(tail)];
  const all = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
  const bytes = Buffer.alloc(16);
  for (const [at, word] of all.entries()) bytes.writeUInt16BE(word, at * 2);
  return bytes;
}

/** RFC 4443, section 2.3: over the message and a head of addresses, length and protocol. */
function checksum(source: Buffer, destination: Buffer, message: Buffer): number {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(message.length, 0);
  head[7] = 58;
  const all = Buffer.concat([source, destination, head, message]);
  let sum = 0;
  for (let at = 0; at < all.length; at += 2) sum += all.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
