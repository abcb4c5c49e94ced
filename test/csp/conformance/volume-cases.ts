import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Context, DIALECTS, MIB } from '#test/csp/conformance/context';

const ECHOED = {
  multi_initiator: false,
  host_encryption: 'false',
  access_protocol: 'iscsi',
  fs_owner: '1000:1000',
  nfs_mount_options: 'nolock',
  'csi.storage.k8s.io/pvc/name': 'data',
  unheard_of: '1e06',
  weight: 5000000,
};

export function volumeCases(context: Context): void {
  describe('volumes', () => {
    it.each(DIALECTS)('%s: are what was asked for, in every lookup', async dialect => {
      const name = context.name('pvc');
      const size = MIB + 4096;
      const volume = await context.volume(dialect, { name, size, description: 'my first volume', volume_group_id: '' });
      expect(volume).toMatchObject({
        id: expect.stringMatching(/^\S+$/),
        name,
        size,
        used_bytes: 0,
        free_bytes: size,
        description: 'my first volume',
        published: false,
        base_snapshot_id: '',
        volume_group_id: '',
      });
      expect(volume).not.toHaveProperty('lun_id');
      expect(volume.config).toMatchObject({
        pool: expect.any(String),
        folder: '',
        encrypted: false,
        thick: false,
        performance_policy: expect.any(String),
        dedupe_enabled: false,
        limit_iops: -1,
        limit_mbps: -1,
        destroy_on_delete: false,
        sync_on_detach: true,
        clone_of: '',
        target_scope: 'volume',
      });
      expect(await context.ok(dialect, 'GET', `/volumes/${volume.id}`)).toEqual(volume);
      expect(await context.ok(dialect, 'GET', `/volumes?name=${name}`)).toEqual([volume]);
      expect(await context.ok(dialect, 'GET', '/volumes')).toContainEqual(volume);
      await context.ok(dialect, 'DELETE', `/volumes/${volume.id}?force=false`);
      await context.refuse(dialect, 'GET', `/volumes/${volume.id}`, undefined, 404);
      const gone = await context.refuse(dialect, 'GET', `/volumes?name=${name}`, undefined, 404);
      expect(gone.body.errors[0].message).toBe(`Volume with name ${name} not found.`);
      await context.refuse(dialect, 'DELETE', `/volumes/${volume.id}`, undefined, 404);
    });

    it.each(DIALECTS)('%s: keep the config as it came', async dialect => {
      const config = { ...ECHOED, thick: 'false', limit_iops: '-1', sync_on_detach: 'true', destroy_on_delete: 'true' };
      const volume = await context.volume(dialect, { config });
      expect(volume.config).toMatchObject(config);
      expect((await context.ok(dialect, 'GET', `/volumes/${volume.id}`)).config).toEqual(volume.config);
      for (const value of Object.values(volume.config)) expect(['string', 'number', 'boolean']).toContain(typeof value);
      await context.ok(dialect, 'DELETE', `/volumes/${volume.id}`);
    });

    it('have their size to the byte, be it number or digits', async () => {
      for (const size of [3 * MIB, String(3 * MIB)]) {
        const volume = await context.volume('bare', { size });
        expect(volume.size).toBe(3 * MIB);
        await context.ok('bare', 'DELETE', `/volumes/${volume.id}`);
      }
    });

    it.each([
      '0',
      0,
      -1,
      '-1',
      1.5,
      '1.5',
      '1e9',
      ' 1048576',
      '10Gi',
      '',
      null,
      true,
      [1048576],
      '9223372036854775808',
      '99999999999999999999',
      1e30,
      '0x100000',
      // No whole blocks of 512 bytes.
      5,
      '1048577',
    ])('of size %j are refused', async size => {
      const name = context.name('pvc');
      await context.refuse('bare', 'POST', '/volumes', { name, size }, 400, /^size: /);
      await context.refuse('bare', 'GET', `/volumes?name=${name}`, undefined, 404);
    });

    it.each([
      ['name', { name: '' }],
      ['name', { name: '  ' }],
      ['name', { name: 'n'.repeat(300) }],
      ['name', { name: undefined }],
      ['name', { name: 7 }],
      ['name', { name: 'a\u0000b' }],
      ['name', { name: 'a\nb' }],
      ['name', { name: '\ud800' }],
      ['description', { description: 'a\u0000b' }],
      ['description', { description: 'd'.repeat(5000) }],
      ['config', { config: [] }],
      ['config', { config: 'thick' }],
      ['config.a', { config: { a: null } }],
      ['config.a', { config: { a: { b: 1 } } }],
      ['config.a', { config: { a: ['b'] } }],
      ['config.a', { config: { a: 'x'.repeat(5000) } }],
      ['config.a', { config: { a: '\u0000' } }],
      ['config', { config: Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`k${n}`, n])) }],
      ['config.thick', { config: { thick: 'yes' } }],
      ['config.thick', { config: { thick: 1 } }],
      ['config.encrypted', { config: { encrypted: 'no' } }],
      ['config.dedupe_enabled', { config: { dedupe_enabled: '' } }],
      ['config.destroy_on_delete', { config: { destroy_on_delete: 0 } }],
      ['config.sync_on_detach', { config: { sync_on_detach: 'maybe' } }],
      ['config.multi_initiator', { config: { multi_initiator: 'maybe' } }],
      ['config.limit_iops', { config: { limit_iops: 'many' } }],
      ['config.limit_iops', { config: { limit_iops: 0 } }],
      ['config.limit_mbps', { config: { limit_mbps: 1.5 } }],
      ['config.limit_mbps', { config: { limit_mbps: '-2' } }],
      ['config.encrypted', { config: { encrypted: 'true' } }],
      ['config.pool', { config: { pool: true } }],
      ['config.pool', { config: { pool: 'no-such-pool' } }],
      ['config.access_protocol', { config: { access_protocol: 'NFS' } }],
      ['config.performance_policy', { config: { performance_policy: 1 } }],
      ['clone', { clone: 'true' }],
      ['clone', { clone: true }],
      ['clone', { clone: false, base_snapshot_id: randomUUID() }],
      ['volume_group_id', { volume_group_id: 1 }],
      ['base_snapshot_id', { base_snapshot_id: null }],
    ])('with a wrong %s are refused: %j', async (field, wrong) => {
      const name = context.name('pvc');
      const about = new RegExp(`^${field}: `);
      await context.refuse('bare', 'POST', '/volumes', { name, size: MIB, ...wrong }, 400, about);
      await context.refuse('bare', 'GET', `/volumes?name=${name}`, undefined, 404);
    });

    it.each([
      ['base_snapshot_id', { clone: true, base_snapshot_id: randomUUID() }],
      ['base_snapshot_id', { clone: true, base_snapshot_id: 'reallyfakesnapshotid' }],
      ['parent_volume_id', { clone: true, parent_volume_id: randomUUID() }],
      ['volume_group_id', { volume_group_id: randomUUID() }],
      ['volume_group_id', { volume_group_id: 'x/y' }],
    ])('of an unknown %s are refused: %j', async (_, wrong) => {
      const name = context.name('pvc');
      await context.refuse('bare', 'POST', '/volumes', { name, size: MIB, ...wrong }, 404);
      await context.refuse('bare', 'GET', `/volumes?name=${name}`, undefined, 404);
    });

    it('made again are the same; of another size they are a conflict', async () => {
      const name = context.name('pvc');
      const first = await context.volume('bare', { name });
      expect(await context.volume('data', { name, size: String(MIB) })).toEqual(first);
      await context.refuse('bare', 'POST', '/volumes', { name, size: 2 * MIB }, 409, name);
      await context.ok('bare', 'DELETE', `/volumes/${first.id}`);
    });

    it('made by twenty callers at once are one', async () => {
      const name = context.name('pvc');
      const all = await Promise.all(Array.from({ length: 20 }, () => context.volume('bare', { name })));
      expect(new Set(all.map(({ id }) => id)).size).toBe(1);
      await context.ok('bare', 'DELETE', `/volumes/${all[0].id}`);
    });

    it.each(['snap-2026-11-20T10:32:45+05:30', 'with space', '100%', 'ümläut', 'a=b', '%41', "quote'"])(
      'named %j are found',
      async suffix => {
        const name = `${context.name('pvc')}-${suffix}`;
        const volume = await context.volume('bare', { name });
        expect(await context.ok('bare', 'GET', `/volumes?name=${encodeURIComponent(name)}`)).toEqual([volume]);
        // As the driver pastes it, where that is HTTP at all and no escape.
        if (!/[ %ü]|%41/.test(suffix))
          expect(await context.ok('bare', 'GET', `/volumes?name=${name}`)).toEqual([volume]);
        if (suffix === '100%') expect(await context.ok('bare', 'GET', `/volumes?name=${name}`)).toEqual([volume]);
        await context.ok('bare', 'DELETE', `/volumes/${volume.id}`);
      },
    );

    it.each([
      ['an empty name', '?name=', 404],
      ['a name of 300 characters', `?name=${'n'.repeat(300)}`, 404],
      ['a name with a NUL', '?name=%00', 404],
      ['two names', '?name=a&name=b', 400],
    ] as const)('by %s: none', async (_, query, status) => {
      await context.refuse('bare', 'GET', `/volumes${query}`, undefined, status);
    });
  });
}
