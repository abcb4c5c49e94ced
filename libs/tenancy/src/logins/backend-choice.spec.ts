import { describe, expect, it } from 'vitest';
import { type BackendChoice, chooseBackend, plainHost } from '#tenancy/logins/backend-choice';

const backend = (name: string, addresses?: unknown): BackendChoice => ({
  id: name,
  name,
  kind: 'reflink',
  config: { addresses },
});
const fast = backend('fast', ['192.0.2.7', '2001:db8::7', 'array.example.org', '192.0.2.8:8443']);
const local = backend('local');
const chosen = (all: BackendChoice[], arrayIp: string) => chooseBackend(all, arrayIp)?.name;

describe('array_ip', () => {
  it.each([
    ['fast', 'fast'],
    ['fast:443', 'fast'],
    ['192.0.2.7', 'fast'],
    ['192.0.2.7:443', 'fast'],
    ['192.0.2.8', 'fast'],
    ['2001:db8::7', 'fast'],
    ['[2001:db8::7]', 'fast'],
    ['[2001:DB8:0:0::7]:443', 'fast'],
    ['Array.example.org', 'fast'],
    [' array.example.org:8443 ', 'fast'],
    ['local', 'local'],
    ['', 'local'],
  ])('%j selects %s', (arrayIp, name) => {
    expect(chosen([fast, local], arrayIp)).toBe(name);
  });

  it.each(['192.0.2.70', '10.10.10.1', 'unknown', 'LOCAL2', '[', '[]', ':443', '::', 'http://192.0.2.7', '\0'])(
    '%j is unknown',
    arrayIp => {
      expect(chosen([fast, local], arrayIp)).toBeUndefined();
    },
  );

  it('that is empty means the oldest where none is named local, and nothing where there is none', () => {
    expect(chosen([fast, backend('slow')], '')).toBe('fast');
    expect(chosen([], '')).toBeUndefined();
  });

  it('goes by name first', () => {
    expect(chosen([backend('a', ['b']), backend('b')], 'b')).toBe('b');
  });

  it('does not stumble over addresses that are no texts', () => {
    expect(chosen([backend('a', 'b'), backend('c', [7, null])], 'b')).toBeUndefined();
  });
});

it('leaves a scope as it is', () => {
  expect(plainHost('fe80::1%eth0')).toBe('fe80::1%eth0');
  expect(plainHost('[fe80::1%eth0]:443')).toBe('fe80::1%eth0');
});
