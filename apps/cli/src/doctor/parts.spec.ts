import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { checkRedis, type PostgresFacts, postgresFindings, redisFindings } from './parts.js';

const NOW = 1_800_000_000;
const GOOD: PostgresFacts = {
  number: 180_004,
  version: '18.4',
  clock: NOW,
  fsync: 'on',
  connections: 200,
  bypasses: false,
};
const levels = (facts: Partial<PostgresFacts>): string[] =>
  postgresFindings({ ...GOOD, ...facts }, NOW).map(({ level, detail }) => `${level} ${detail}`);

describe('doctor', () => {
  it('finds nothing wrong with what up starts', () => {
    expect(levels({})).toEqual(['ok 18.4']);
    expect(redisFindings('noeviction', 'yes', '7.0.15')).toEqual([
      { name: 'redis', level: 'ok', detail: '7.0.15, noeviction, append-only' },
    ]);
  });

  it('refuses a PostgreSQL that is too old, and warns of one that is untried', () => {
    expect(levels({ number: 140_011, version: '14.11' })).toEqual(['fail 14.11']);
    expect(levels({ number: 150_000, version: '15.0' })).toEqual(['ok 15.0']);
    expect(levels({ number: 190_000, version: '19.0' })).toEqual(['warn 19.0']);
  });

  it('finds what loses acknowledged operations or tenants', () => {
    expect(levels({ fsync: 'off' })).toContain('fail fsync is off');
    expect(levels({ bypasses: true })).toContain('fail the application role can bypass row security');
  });

  it('warns of clocks that differ and of few connections', () => {
    expect(levels({ clock: NOW - 3 })).toContain('warn the database is 3.0 s away');
    expect(levels({ clock: NOW + 1 })).toEqual(['ok 18.4']);
    expect(levels({ connections: 20 })).toContain('warn max_connections is 20');
  });

  it('warns of a Redis that forgets jobs', () => {
    expect(redisFindings('allkeys-lru', 'no', '7.0.15').map(({ level }) => level)).toEqual(['warn', 'warn']);
  });

  it('says of a Redis that is away, or hangs up, why it is', async () => {
    const deaf = createServer(socket => socket.destroy()).listen(0, '127.0.0.1');
    await once(deaf, 'listening');
    const { port } = deaf.address() as AddressInfo;
    const told = async () =>
      (await checkRedis(`redis://127.0.0.1:${port}`)).map(({ level, detail }) => `${level} ${detail}`);
    expect(await told()).toEqual(['fail it takes the connection, and ends it or gives no answer']);
    deaf.close();
    await once(deaf, 'close');
    expect(await told()).toEqual([`fail connect ECONNREFUSED 127.0.0.1:${port}`]);
  }, 20_000);

  it('refuses a Redis that the queue does not support', () => {
    expect(redisFindings('noeviction', 'yes', '4.0.14').map(({ level }) => level)).toEqual(['fail']);
    expect(redisFindings('noeviction', 'yes', '6.0.16').map(({ level }) => level)).toEqual(['warn']);
    expect(redisFindings('noeviction', 'yes', '6.2.0').map(({ level }) => level)).toEqual(['ok']);
  });
});
