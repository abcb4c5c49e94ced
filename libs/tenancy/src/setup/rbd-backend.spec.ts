import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '#platform/config/config';
import { backendsOf } from '#tenancy/setup/setup';

const folder = mkdtempSync(join(tmpdir(), 'trivet-rbd-'));
const keyFile = join(folder, 'key');
writeFileSync(keyFile, 'QVFBQUFBQUFBQUFBQUFBQUFBQUFBQQ==\n');
afterAll(() => rmSync(folder, { recursive: true }));

const backends = (env: Record<string, string>) => backendsOf(loadConfig([], { TRIVET_HOME: '/home/t', ...env }));
const all = { TRIVET_RBD_MONITORS: '10.0.0.5', TRIVET_RBD_POOL: 'trivet', TRIVET_RBD_KEY_FILE: keyFile };

describe('the backend of images of Ceph', () => {
  it('is absent without monitors, and wants a pool and a key with them', () => {
    expect(backends({ TRIVET_RBD_POOL: 'trivet' })).toEqual([]);
    for (const missing of ['TRIVET_RBD_POOL', 'TRIVET_RBD_KEY_FILE'])
      expect(() => backends({ ...all, [missing]: '' })).toThrow(new RegExp(`${missing}: required`));
  });

  it('has one pool, and is exported where portals are named', () => {
    const monitors = '[v2:10.0.0.5:3300/0,v1:10.0.0.5:6789/0], 10.0.0.6';
    const more = { TRIVET_RBD_PORTALS: '10.0.0.9:3260', TRIVET_RBD_DATA_POOL: 'ec', TRIVET_RBD_CAPACITY_BYTES: '1000' };
    expect(backends({ ...all, ...more, TRIVET_RBD_MONITORS: monitors })).toEqual([
      {
        name: 'ceph',
        kind: 'rbd',
        config: {
          monitors: ['[v2:10.0.0.5:3300/0,v1:10.0.0.5:6789/0]', '10.0.0.6'],
          user: 'trivet',
          pools: [
            {
              name: 'ceph',
              cephPool: 'trivet',
              dataPool: 'ec',
              capacityBytes: 1_000,
              portals: ['10.0.0.9:3260'],
              withoutChap: false,
            },
          ],
          addresses: ['10.0.0.9'],
          exporter: { kind: 'tgt', folder: '/home/t/run/tgt' },
        },
        credentials: { key: 'QVFBQUFBQUFBQUFBQUFBQUFBQUFBQQ==' },
      },
    ]);
    expect(backends(all)[0]?.config).toMatchObject({ exporter: { kind: 'none' } });
  });
});
