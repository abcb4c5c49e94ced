import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Context, DIALECTS, MIB } from '#test/csp/conformance/context';

export function snapshotCases(context: Context): void {
  describe('snapshots', () => {
    it.each(DIALECTS)('%s: are what was asked for, in every lookup', async dialect => {
      const volume = await context.volume(dialect);
      const name = context.name('snapshot');
      const snapshot = await context.snapshot(dialect, volume.id, { name, description: 'my first snapshot' });
      expect(snapshot).toEqual({
        id: expect.stringMatching(/^\S+$/),
        name,
        size: MIB,
        description: 'my first snapshot',
        volume_id: volume.id,
        volume_name: volume.name,
        creation_time: expect.any(Number),
        ready_to_use: true,
        in_use: false,
        config: { online: false, writable: false },
      });
      expect(Math.abs(snapshot.creation_time - Date.now() / 1000)).toBeLessThan(60);
      const list = (query: string) => context.ok(dialect, 'GET', `/snapshots${query}`);
      expect(await context.ok(dialect, 'GET', `/snapshots/${snapshot.id}`)).toEqual(snapshot);
      expect(await list(`?volume_id=${volume.id}`)).toEqual([snapshot]);
      expect(await list(`/?volume_id=${volume.id}&name=${name}`)).toEqual([snapshot]);
      expect(await list(`?name=${name}`)).toEqual([snapshot]);
      expect(await list('')).toContainEqual(snapshot);
      await context.refuse(dialect, 'DELETE', `/volumes/${volume.id}`, undefined, 409);
      await context.ok(dialect, 'DELETE', `/snapshots/${snapshot.id}`);
      await context.refuse(dialect, 'GET', `/snapshots/${snapshot.id}`, undefined, 404);
      await context.refuse(dialect, 'DELETE', `/snapshots/${snapshot.id}`, undefined, 404);
      await context.refuse(dialect, 'GET', `/snapshots?volume_id=${volume.id}&name=${name}`, undefined, 404, name);
      expect(await list(`?volume_id=${volume.id}`)).toEqual([]);
      await context.ok(dialect, 'DELETE', `/volumes/${volume.id}`);
    });

    it('of an unknown volume: an empty list', async () => {
      for (const id of [randomUUID(), 'reallyfakevolumeid', 'x'.repeat(300), 'a%2Fb', '']) {
        expect(await context.ok('bare', 'GET', `/snapshots?volume_id=${id}`)).toEqual([]);
        expect(await context.ok('data', 'GET', `/snapshots?volume_id=${id}&mode=exists`)).toEqual([]);
      }
    });

    it('are one where one is enough to know', async () => {
      const { id } = await context.volume('bare');
      for (let n = 0; n < 3; n++) await context.snapshot('bare', id);
      expect(await context.ok('bare', 'GET', `/snapshots?volume_id=${id}`)).toHaveLength(3);
      expect(await context.ok('bare', 'GET', `/snapshots?volume_id=${id}&mode=exists`)).toHaveLength(1);
      await context.ok('bare', 'DELETE', `/volumes/${id}?force=true`);
    });

    it('of one name and volume are one, of another volume another', async () => {
      const [one, two] = [await context.volume('bare'), await context.volume('bare')];
      const name = context.name('snapshot');
      const first = await context.snapshot('bare', one.id, { name });
      expect(await context.snapshot('bare', one.id, { name })).toEqual(first);
      // The driver asks before it makes one, and must learn that the name is taken (docs/callers.md#look-ups).
      expect(await context.ok('bare', 'GET', `/snapshots?name=${name}&volume_id=${two.id}`)).toEqual([first]);
      const second = await context.snapshot('bare', two.id, { name });
      expect(second.id).not.toBe(first.id);
      expect(await context.ok('bare', 'GET', `/snapshots?name=${name}&volume_id=${two.id}`)).toEqual([second]);
      for (const { id } of [one, two]) await context.ok('bare', 'DELETE', `/volumes/${id}?force=true`);
    });

    it('keep the size of their cut', async () => {
      const { id } = await context.volume('bare');
      const snapshot = await context.snapshot('bare', id);
      await context.ok('bare', 'PUT', `/volumes/${id}`, { size: 2 * MIB });
      expect((await context.ok('bare', 'GET', `/snapshots/${snapshot.id}`)).size).toBe(MIB);
      await context.ok('bare', 'DELETE', `/volumes/${id}?force=true`);
    });

    it('by an empty name, and by one of 300 characters: none', async () => {
      for (const name of ['', 'n'.repeat(300), '%00'])
        await context.refuse('bare', 'GET', `/snapshots?name=${name}`, undefined, 404);
    });

    it('of ids that are not ours: 404', async () => {
      for (const id of [randomUUID(), 'reallyfakesnapshotid', 'a%2Fb', '%zz', 'x'.repeat(300)])
        for (const method of ['GET', 'DELETE'])
          await context.refuse('bare', method, `/snapshots/${id}`, undefined, 404);
    });

    it.each([
      ['name', 400, { name: '' }],
      ['name', 400, { name: 'n'.repeat(300) }],
      ['volume_id', 400, { volume_id: undefined }],
      ['volume_id', 400, { volume_id: 7 }],
      ['config.a', 400, { config: { a: {} } }],
      ['config.writable', 400, { config: { online: 'false', writable: 'true' } }],
      ['config.online', 400, { config: { online: true } }],
      ['config.online', 400, { config: { online: 'yes' } }],
      ['', 404, { volume_id: randomUUID() }],
      ['', 404, { volume_id: 'reallyfakevolumeid' }],
      ['', 404, { volume_id: '' }],
    ])('with a wrong %s are refused with %i: %j', async (field, status, wrong) => {
      const volume = await context.volume('bare');
      const body = { name: context.name('snapshot'), volume_id: volume.id, ...wrong };
      const about = field === '' ? /./ : new RegExp(`^${field}: `);
      await context.refuse('bare', 'POST', '/snapshots', body, status, about);
      expect(await context.ok('bare', 'GET', `/snapshots?volume_id=${volume.id}`)).toEqual([]);
    });
  });

  describe('clones', () => {
    it.each(DIALECTS)('%s: of a snapshot name where they are from, and hold it', async dialect => {
      const source = await context.volume(dialect);
      const snapshot = await context.snapshot(dialect, source.id);
      const name = context.name('clone');
      const body = { name, size: 2 * MIB, base_snapshot_id: snapshot.id, clone: true };
      const clone = await context.ok(dialect, 'POST', '/volumes', body);
      expect(clone).toMatchObject({
        name,
        size: 2 * MIB,
        base_snapshot_id: snapshot.id,
        config: { clone_of: source.name },
      });
      expect(await context.ok(dialect, 'POST', '/volumes', body)).toEqual(clone);
      expect((await context.ok(dialect, 'GET', `/snapshots/${snapshot.id}`)).in_use).toBe(true);
      const conflict = await context.refuse(dialect, 'DELETE', `/snapshots/${snapshot.id}`, undefined, 409);
      expect(conflict.body.errors[0].message).toMatch(/^The request could not be completed due to a conflict\. ./);
      await context.ok(dialect, 'DELETE', `/volumes/${clone.id}`);
      await context.ok(dialect, 'DELETE', `/snapshots/${snapshot.id}`);
      await context.ok(dialect, 'DELETE', `/volumes/${source.id}`);
    });

    it('of a volume, and without a size, are as large as it', async () => {
      const source = await context.volume('bare', { size: 3 * MIB });
      const clone = await context.ok('bare', 'POST', '/volumes', {
        name: context.name('clone'),
        clone: true,
        parent_volume_id: source.id,
      });
      expect(clone).toMatchObject({ size: 3 * MIB, parent_volume_id: source.id, config: { clone_of: source.name } });
      for (const { id } of [clone, source]) await context.ok('bare', 'DELETE', `/volumes/${id}`);
    });

    it('smaller than their source, or of another volume’s snapshot, are refused', async () => {
      const [source, other] = [await context.volume('bare', { size: 2 * MIB }), await context.volume('bare')];
      const snapshot = await context.snapshot('bare', source.id);
      const body = { name: context.name('clone'), clone: true, base_snapshot_id: snapshot.id };
      await context.refuse('bare', 'POST', '/volumes', { ...body, size: MIB }, 400, /size/);
      const wrong = { ...body, parent_volume_id: other.id };
      await context.refuse('bare', 'POST', '/volumes', wrong, 400, /^parent_volume_id: /);
      await context.refuse('bare', 'GET', `/volumes?name=${body.name}`, undefined, 404);
      await context.ok('bare', 'DELETE', `/volumes/${source.id}?force=true`);
    });

    it('of the driver’s own snapshots leave them in no list', async () => {
      const source = await context.volume('bare');
      const name = `snap-for-clone-${new Date().toISOString().slice(0, 19)}+05:30`;
      const snapshot = await context.snapshot('bare', source.id, { name });
      expect(await context.snapshot('bare', source.id, { name })).toEqual(snapshot);
      const body = { name: context.name('clone'), size: MIB, base_snapshot_id: snapshot.id, clone: true };
      const clone = await context.ok('bare', 'POST', '/volumes', body);
      expect(clone.base_snapshot_id).toBe(snapshot.id);
      expect(await context.ok('bare', 'GET', `/snapshots?volume_id=${source.id}`)).toEqual([]);
      await context.ok('bare', 'DELETE', `/volumes/${source.id}`);
      expect(await context.ok('bare', 'GET', `/volumes/${clone.id}`)).toMatchObject({ name: clone.name, size: MIB });
      await context.ok('bare', 'DELETE', `/volumes/${clone.id}`);
    });
  });
}
