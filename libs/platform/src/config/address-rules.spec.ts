import { expect, it } from 'vitest';
import { guardedLookup, isRefusedAddress, refusedUrl } from '#platform/config/address-rules';

it.each([
  '169.254.169.254',
  '169.254.0.1',
  '0.0.0.0',
  '224.0.0.1',
  '255.255.255.255',
  '100.100.100.200',
  'fe80::1',
  'fe80::1%eth0',
  'febf::1',
  'ff02::1',
  '::',
  'fd00:ec2::254',
  'FD00:0EC2:0:0::254',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '64:ff9b::169.254.169.254',
])('refuses %s', address => expect(isRefusedAddress(address)).toBe(true));

it.each(['127.0.0.1', '10.0.0.1', '192.168.1.2', '198.51.100.7', '::1', 'fd12::1', '2001:db8::1', '::ffff:10.0.0.1'])(
  'takes %s',
  address => expect(isRefusedAddress(address)).toBe(false),
);

it.each([
  ['http://169.254.169.254/latest', /link-local/],
  // Other spellings of that address.
  ['http://2852039166:7480', /link-local/],
  ['http://0xa9fea9fe', /link-local/],
  ['http://[fe80::1]:7480', /link-local/],
  ['http://[::ffff:169.254.169.254]', /link-local/],
  ['http://key:secret@127.0.0.1', /credentials/],
])('refuses the address %s', async (url, reason) => expect(await refusedUrl(url)).toMatch(reason));

it.each(['http://127.0.0.1:7480', 'https://localhost:7480', 'http://store.invalid'])(
  'takes the address %s',
  async url => expect(await refusedUrl(url)).toBeUndefined(),
);

it('judges what a name leads to when it is connected to', async () => {
  const look = (name: string) =>
    new Promise<string>(resolve =>
      guardedLookup(name, { all: false }, (error, address) => resolve(error ? String(error.code) : String(address))),
    );
  expect(await look('localhost')).toMatch(/^(127\.0\.0\.1|::1)$/);
  // The resolver takes numbers for names.
  expect(await look('169.254.169.254')).toBe('EADDRNOTAVAIL');
});
