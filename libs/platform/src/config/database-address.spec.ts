import { describe, expect, it } from 'vitest';
import { hostsIn, parseAddress } from '#platform/config/database-address';

describe('an address of PostgreSQL', () => {
  it('of one host stays as it is written', () => {
    const url = 'postgresql://trivet_app:p%40ss@db.example/trivet?sslmode=verify-full';
    expect(parseAddress(url)).toEqual({ url, hosts: [{ host: 'db.example', port: 5432 }], readWrite: false });
  });

  it('of several hosts is for the one that takes writes, whether it says so or not', () => {
    const hosts = [
      { host: 'a', port: 5433 },
      { host: 'b', port: 5432 },
      { host: 'fd00::1', port: 5434 },
    ];
    for (const query of ['', '?target_session_attrs=read-write', '?target_session_attrs=any'])
      expect(parseAddress(`postgres://u:p@a:5433,b,[fd00::1]:5434/trivet${query}`)).toEqual({
        url: 'postgres://u:p@a:5433/trivet',
        hosts,
        readWrite: true,
      });
    expect(hostsIn('postgres://u:p@a:5433,b,[fd00::1]:5434/trivet')).toBe('a:5433, b:5432, [fd00::1]:5434');
  });

  it('keeps what node-postgres reads of it', () => {
    const address = parseAddress('postgres://u:p@a,b/trivet?sslmode=require&target_session_attrs=primary');
    expect(address?.url).toBe('postgres://u:p@a/trivet?sslmode=require');
  });

  it('of one host may ask for one that takes writes', () => {
    expect(parseAddress('postgres://a/trivet?target_session_attrs=read-write')?.readWrite).toBe(true);
  });

  it.each([
    'postgres://a:x/trivet',
    'postgres://a:70000/t',
    'postgres://a,,b/t',
    'postgres://a/t?target_session_attrs=standby',
    'mysql://a/t',
  ])('%s is none', text => {
    expect(parseAddress(text)).toBeUndefined();
  });
});
