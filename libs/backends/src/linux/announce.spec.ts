import { describe, expect, it } from 'vitest';
import { advertisementFrame, arpFrame } from '#backends/linux/announce';

const MAC = '02:00:00:00:00:2a';

describe('an address is announced', () => {
  it('by ARP to everybody, as sender and as target, in a frame of the least length', () => {
    const request = arpFrame(1, MAC, '10.0.0.50');
    expect(request.toString('hex')).toBe(
      `ffffffffffff02000000002a08060001080006040001${'02000000002a0a0000320000000000000a000032'.padEnd(76, '0')}`,
    );
    expect(arpFrame(2, MAC, '10.0.0.50').subarray(20, 22).toString('hex')).toBe('0002');
  });

  it('by an advertisement to all nodes, with a checksum that adds up', () => {
    const frame = advertisementFrame(MAC, 'fd00::32');
    expect(frame.subarray(0, 14).toString('hex')).toBe('33330000000102000000002a86dd');
    expect(frame.subarray(22, 54).toString('hex')).toBe(
      'fd000000000000000000000000000032ff020000000000000000000000000001',
    );
    // RFC 4443: the sum over head and message, the checksum included, is all ones.
    const message = frame.subarray(54);
    const head = Buffer.from([0, 0, 0, message.length, 0, 0, 0, 58]);
    const all = Buffer.concat([frame.subarray(22, 54), head, message]);
    let sum = 0;
    for (let at = 0; at < all.length; at += 2) sum += all.readUInt16BE(at);
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
    expect(sum).toBe(0xffff);
    expect(message[0]).toBe(136);
  });
});
