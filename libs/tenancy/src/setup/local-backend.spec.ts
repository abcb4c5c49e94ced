import { describe, expect, it } from 'vitest';
import { loadConfig } from '#platform/config/config';
import { localBackend } from '#tenancy/setup/local-backend';

const backend = (env: Record<string, string>) => localBackend(loadConfig([], { TRIVET_HOME: '/home/t', ...env }));

describe('the backend of block volumes', () => {
  it('is absent without pools', () => {
    expect(backend({})).toBeUndefined();
    expect(() => backend({ TRIVET_ISCSI_PORTALS: '127.0.0.1:3260' })).toThrow(/TRIVET_ISCSI_PORTALS.*TRIVET_POOLS/);
  });

  it('gives portals without a name to the first pool', () => {
    const env = { TRIVET_POOLS: 'ssd=/s,hdd=/h', TRIVET_ISCSI_PORTALS: '127.0.0.1:3260,hdd=127.0.0.1:3261' };
    expect(backend(env)).toMatchObject({
      name: 'local',
      kind: 'reflink',
      config: {
        pools: [
          { name: 'ssd', path: '/s', portals: ['127.0.0.1:3260'], withoutChap: false },
          { name: 'hdd', path: '/h', portals: ['127.0.0.1:3261'], withoutChap: false },
        ],
        exporter: { kind: 'tgt', folder: '/home/t/run/tgt' },
      },
    });
  });

  it('exports nothing without a portal, and takes another folder for tgtd', () => {
    expect(backend({ TRIVET_POOLS: 'ssd=/s' })?.config).toMatchObject({ exporter: { kind: 'none' } });
    const env = { TRIVET_POOLS: 'ssd=/s', TRIVET_ISCSI_PORTALS: 'ssd=127.0.0.1:3260', TRIVET_TGT_DIR: '/run/x' };
    expect(backend(env)?.config).toMatchObject({ exporter: { kind: 'tgt', folder: '/run/x' } });
  });

  it('is called by the addresses of its portals and by those that are set, each once and without a port', () => {
    const env = {
      TRIVET_POOLS: 'ssd=/s',
      TRIVET_ISCSI_PORTALS: '192.0.2.7:3260,[2001:db8::7]:3260,192.0.2.7:3261',
      TRIVET_CSP_ADDRESSES: 'array.example.org, 192.0.2.7,2001:db8::8',
    };
    expect(backend(env)?.config.addresses).toEqual(['array.example.org', '192.0.2.7', '2001:db8::8', '2001:db8::7']);
    for (const wrong of ['http://array', 'array:443', 'a b', 'a,,b'])
      expect(() => backend({ TRIVET_POOLS: 'ssd=/s', TRIVET_CSP_ADDRESSES: wrong })).toThrow('TRIVET_CSP_ADDRESSES');
  });

  it('names a portal of a pool that there is not', () => {
    expect(() => backend({ TRIVET_POOLS: 'ssd=/s', TRIVET_ISCSI_PORTALS: 'tape=127.0.0.1:3260' })).toThrow(/tape/);
  });
});
