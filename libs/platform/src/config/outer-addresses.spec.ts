import { describe, expect, it } from 'vitest';
import { networks } from '#platform/config/alert-settings';
import { OuterAddresses } from '#platform/config/outer-addresses';

const nowhere = new OuterAddresses();
const own = new OuterAddresses([
  { address: '10.1.0.0', bits: 16 },
  { address: 'fd12::', bits: 16 },
]);

it.each([
  '127.0.0.1',
  '127.8.8.8',
  '0.0.0.0',
  '10.1.2.3',
  '100.64.0.1',
  '100.100.100.200',
  '169.254.169.254',
  '168.63.129.16',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192',
  '192.168.1.1',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::ffff:10.1.2.3',
  '::7f00:1',
  '64:ff9b::a00:1',
  '2002:7f00:1::',
  '2001:0:7f00:1::',
  '2001:db8::1',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fe80::1%eth0',
  'ff02::1',
  'no address',
])('%s is refused', address => expect(nowhere.isRefused(address)).toBe(true));

it.each(['1.1.1.1', '172.32.0.1', '100.128.0.1', '198.20.0.1', '2606:4700::1111', '::ffff:1.1.1.1'])(
  '%s is taken',
  address => expect(nowhere.isRefused(address)).toBe(false),
);

describe('a network of one’s own', () => {
  it.each(['10.1.2.3', '::ffff:10.1.2.3', 'fd12::7'])('%s is taken', address => {
    expect(own.isRefused(address)).toBe(false);
    expect(own.isOwn(address)).toBe(true);
  });

  it.each(['10.2.0.1', '127.0.0.1', 'fd13::7'])('%s of no such network is refused', address =>
    expect(own.isRefused(address)).toBe(true),
  );

  it('does not make metadata services, links and multicast ones', () => {
    const everything = new OuterAddresses(networks.parse('0.0.0.0/0, ::/0'));
    for (const address of [
      '169.254.169.254',
      '168.63.129.16',
      '100.100.100.200',
      'fd00:ec2::254',
      'fe80::1',
      '224.0.0.1',
      '0.0.0.0',
    ])
      expect(everything.isRefused(address), address).toBe(true);
    expect(everything.isRefused('127.0.0.1')).toBe(false);
  });
});

describe('a name', () => {
  it('that leads inside is refused where it is connected to', async () => {
    await expect(nowhere.addressOf('localhost')).rejects.toThrow(/localhost leads to .* TRIVET_ALERT_NETWORKS/);
    await expect(nowhere.addressOf('127.0.0.1')).rejects.toThrow(/^127.0.0.1 is an address/);
    const local = new OuterAddresses(networks.parse('127.0.0.0/8, ::1/128'));
    expect(['127.0.0.1', '::1']).toContain(await local.addressOf('localhost'));
  });
});

it.each(['10.0.0.0', '10.0.0.0/33', 'name/8', '::/129', '10.0.0.0/8,', '/8'])('%s names no networks', text =>
  expect(networks.safeParse(text).success).toBe(false),
);
