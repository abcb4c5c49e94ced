import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Context, DIALECTS, MIB } from '#test/csp/conformance/context';

const unexpected = (name: string) =>
  `^The request could not be understood by the server\\. Unexpected argument '${name}'\\.$`;

export function editCases(context: Context): void {
  describe('edits of volumes', () => {
    it.each(DIALECTS)('%s: change what may be changed, and answer the whole volume', async dialect => {
      const before = await context.volume(dialect, { description: 'old' });
      const path = `/volumes/${before.id}`;
      const described = await context.ok(dialect, 'PUT', path, { description: 'my cool new description' });
      expect(described).toEqual({ ...before, description: 'my cool new description' });
      const config = { destroy_on_delete: 'true', sync_on_detach: 'false', limit_iops: '-1', fs_mode: '0770' };
      const edited = await context.ok(dialect, 'PUT', path, { id: before.id, volume_group_id: '', config });
      expect(edited).toEqual({ ...described, config: { ...before.config, ...config } });
      expect(await context.ok(dialect, 'GET', path)).toEqual(edited);
      await context.ok(dialect, 'DELETE', path);
    });

    it('without any change answer the volume', async () => {
      const volume = await context.volume('bare');
      for (const body of [{}, { id: volume.id }, { config: {} }])
        expect(await context.ok('bare', 'PUT', `/volumes/${volume.id}`, body)).toEqual(volume);
    });

    it.each([
      { encrypted: true },
      { thick: 'true' },
      { dedupe_enabled: true },
      { pool: 'other' },
      { folder: 'f' },
      { unheard_of: 'x' },
    ])('refuse what cannot be changed: %j', async config => {
      const volume = await context.volume('data');
      const [key] = Object.keys(config);
      const body = { description: 'not this either', config };
      await context.refuse('data', 'PUT', `/volumes/${volume.id}`, body, 400, new RegExp(unexpected(key!)));
      expect(await context.ok('data', 'GET', `/volumes/${volume.id}`)).toEqual(volume);
    });

    it.each(['name', 'published', 'base_snapshot_id', 'parent_volume_id', 'clone', 'unheard_of'])(
      'refuse the member %s',
      async member => {
        const volume = await context.volume('bare');
        const body = { [member]: volume[member] ?? 'x', description: 'd' };
        await context.refuse('bare', 'PUT', `/volumes/${volume.id}`, body, 400, new RegExp(unexpected(member)));
      },
    );

    it('grow to the byte, by number or digits, and never shrink', async () => {
      const volume = await context.volume('bare');
      const path = `/volumes/${volume.id}`;
      const body = { id: volume.id, size: 2 * MIB + 4096, volume_group_id: '' };
      expect(await context.ok('bare', 'PUT', path, body)).toEqual({
        ...volume,
        size: 2 * MIB + 4096,
        free_bytes: 2 * MIB + 4096,
      });
      expect(await context.ok('bare', 'PUT', path, body)).toMatchObject({ size: 2 * MIB + 4096 });
      expect((await context.ok('bare', 'PUT', path, { size: String(3 * MIB) })).size).toBe(3 * MIB);
      await context.refuse('bare', 'PUT', path, { size: MIB }, 400, /size/);
      for (const size of [0, -1, '1.5', 'huge', 4 * MIB + 1])
        await context.refuse('bare', 'PUT', path, { size }, 400, /^size: /);
      expect((await context.ok('bare', 'GET', path)).size).toBe(3 * MIB);
    });

    it('refuse wrong values', async () => {
      const { id } = await context.volume('bare');
      const path = `/volumes/${id}`;
      await context.refuse('bare', 'PUT', path, { id: randomUUID() }, 400, /^id: /);
      await context.refuse('bare', 'PUT', path, { description: 5 }, 400, /^description: /);
      await context.refuse(
        'bare',
        'PUT',
        path,
        { config: { destroy_on_delete: 'soon' } },
        400,
        /^config.destroy_on_delete: /,
      );
      await context.refuse(
        'bare',
        'PUT',
        path,
        { config: { access_protocol: 'nfs' } },
        400,
        /^config.access_protocol: /,
      );
      await context.refuse(
        'bare',
        'PUT',
        path,
        { config: { performance_policy: 3 } },
        400,
        /^config.performance_policy: /,
      );
      await context.refuse('bare', 'PUT', `/volumes/${randomUUID()}`, { description: 'd' }, 404);
      await context.refuse('bare', 'PUT', '/volumes/reallyfakevolumeid', { description: 'd' }, 404);
    });

    it('join a group, stay in it through other edits, and leave it when nothing else is said', async () => {
      const group = await context.ok('bare', 'POST', '/volume_groups', { name: context.name('group') });
      const volume = await context.volume('bare');
      const path = `/volumes/${volume.id}`;
      const groupNow = async () => (await context.ok('bare', 'GET', path)).volume_group_id;
      expect((await context.ok('bare', 'PUT', path, { volume_group_id: group.id })).volume_group_id).toBe(group.id);
      await context.ok('bare', 'PUT', path, { id: volume.id, size: 2 * MIB, volume_group_id: '' });
      await context.ok('bare', 'PUT', path, { id: volume.id, description: 'd', volume_group_id: '' });
      await context.ok('bare', 'PUT', path, { id: volume.id, config: { fs_mode: '0' }, volume_group_id: '' });
      expect(await groupNow()).toBe(group.id);
      await context.refuse('bare', 'PUT', path, { volume_group_id: randomUUID() }, 404);
      expect(await groupNow()).toBe(group.id);
      expect((await context.ok('bare', 'PUT', path, { id: volume.id, volume_group_id: '' })).volume_group_id).toBe('');
      await context.ok('bare', 'DELETE', `/volume_groups/${group.id}`);
    });
  });
}
