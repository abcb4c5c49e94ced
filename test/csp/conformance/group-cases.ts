import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Context, DIALECTS } from '#test/csp/conformance/context';

export function groupCases(context: Context): void {
  describe('volume groups and snapshot groups', () => {
    it.each(DIALECTS)('%s: cut all members at once', async dialect => {
      const name = context.name('group');
      const config = { protection: 'none' };
      const group = await context.ok(dialect, 'POST', '/volume_groups', { name, description: 'd', config });
      const now = Date.now() / 1000;
      expect(group).toEqual({
        id: expect.any(String),
        name,
        description: 'd',
        config,
        volumes: [],
        creation_time: expect.any(Number),
      });
      expect(Math.abs(group.creation_time - now)).toBeLessThan(60);
      const volumes = [
        await context.volume(dialect, { volume_group_id: group.id }),
        await context.volume(dialect, { volume_group_id: group.id }),
      ];
      expect(volumes[0].volume_group_id).toBe(group.id);
      const full = await context.ok(dialect, 'GET', `/volume_groups/${group.id}`);
      const byName = volumes.map(({ id, name }) => ({ id, name })).sort((a, b) => (a.name < b.name ? -1 : 1));
      expect(full).toEqual({ ...group, volumes: byName });
      expect(await context.ok(dialect, 'GET', `/volume_groups?name=${name}`)).toEqual([full]);
      expect(await context.ok(dialect, 'GET', '/volume_groups')).toContainEqual(full);
      expect(await context.ok(dialect, 'POST', '/volume_groups', { name, description: 'd', config })).toEqual(full);

      const cut = { name: context.name('cut'), volume_group_id: group.id, config: { parameter1: 'default', b: false } };
      const snapshots = await context.ok(dialect, 'POST', '/snapshot_groups', cut);
      expect(snapshots).toMatchObject({
        ...cut,
        id: expect.any(String),
        volume_group_name: name,
        creation_time: expect.any(Number),
      });
      expect(snapshots.snapshots.map((s: { volume_id: string }) => s.volume_id).sort()).toEqual(
        volumes.map(({ id }) => id).sort(),
      );
      for (const { id, name: snapshotName, volume_name } of snapshots.snapshots) {
        expect(volumes.map(volume => volume.name)).toContain(volume_name);
        expect(await context.ok(dialect, 'GET', `/snapshots/${id}`)).toMatchObject({
          name: snapshotName,
          ready_to_use: true,
        });
      }
      expect(await context.ok(dialect, 'POST', '/snapshot_groups', cut)).toEqual(snapshots);
      expect(await context.ok(dialect, 'GET', `/snapshot_groups/${snapshots.id}`)).toEqual(snapshots);
      expect(await context.ok(dialect, 'GET', `/snapshot_groups?volume_group_id=${group.id}`)).toEqual([snapshots]);

      await context.refuse(dialect, 'DELETE', `/volume_groups/${group.id}`, undefined, 409);
      for (let time = 0; time < 2; time++) await context.ok(dialect, 'DELETE', `/snapshot_groups/${snapshots.id}`);
      for (const { id } of snapshots.snapshots)
        await context.refuse(dialect, 'GET', `/snapshots/${id}`, undefined, 404);
      for (const { id } of volumes) await context.ok(dialect, 'DELETE', `/volumes/${id}`);
      for (let time = 0; time < 2; time++) await context.ok(dialect, 'DELETE', `/volume_groups/${group.id}`);
      await context.refuse(dialect, 'GET', `/volume_groups/${group.id}`, undefined, 404);
      await context.refuse(dialect, 'GET', `/volume_groups?name=${name}`, undefined, 404, name);
    });

    it('that are not there: 404, an empty list, and nothing to delete', async () => {
      for (const id of [randomUUID(), 'nothing', 'a%2Fb']) {
        for (const path of [`/volume_groups/${id}`, `/snapshot_groups/${id}`]) {
          await context.refuse('bare', 'GET', path, undefined, 404);
          await context.ok('bare', 'DELETE', path);
        }
        expect(await context.ok('bare', 'GET', `/snapshot_groups?volume_group_id=${id}`)).toEqual([]);
        await context.refuse('bare', 'POST', '/snapshot_groups', { name: 'n', volume_group_id: id }, 404);
      }
    });

    it('by a name that nothing can have: 404', async () => {
      for (const name of ['', '%00', 'n'.repeat(300)])
        await context.refuse('bare', 'GET', `/volume_groups?name=${name}`, undefined, 404);
    });

    it.each(['protection_template', 'protectionTemplate'])('take a template as %s', async key => {
      const body = { name: context.name('group'), config: { [key]: 'Retain-30Daily' } };
      const group = await context.ok('bare', 'POST', '/volume_groups', body);
      expect(group.config).toEqual(body.config);
      const volume = await context.volume('bare', { volume_group_id: group.id });
      await context.ok('bare', 'DELETE', `/volumes/${volume.id}`);
      await context.ok('bare', 'DELETE', `/volume_groups/${group.id}`);
    });

    it('refuse wrong fields', async () => {
      await context.refuse('bare', 'GET', '/snapshot_groups', undefined, 400, /^volume_group_id: /);
      await context.refuse('bare', 'POST', '/volume_groups', { name: '' }, 400, /^name: /);
      await context.refuse('bare', 'POST', '/volume_groups', { name: 'n'.repeat(300) }, 400, /^name: /);
      await context.refuse('bare', 'POST', '/volume_groups', { name: 'n', config: { a: null } }, 400, /^config.a: /);
      const name = context.name('group');
      for (const [about, config] of [
        [/^protection_template: /, { protection_template: 'no-such-template' }],
        [/^protection_template: /, { protectionTemplate: 'no-such-template' }],
        [/^config.protection_template: /, { protection_template: 7 }],
        [/^config.io_max_limit: .* remove the line ioMaxLimit from the VolumeGroupClass/, { io_max_limit: '300' }],
        [/^config.bwMaxLimitKb: /, { bwMaxLimitKb: '300' }],
        [/^config.domain: /, { domain: 'd' }],
      ] as const)
        await context.refuse('bare', 'POST', '/volume_groups', { name, config }, 400, about);
      await context.refuse('bare', 'GET', `/volume_groups?name=${name}`, undefined, 404);
      const writable = { name: 'n', volume_group_id: randomUUID(), config: { read_only: 'false' } };
      await context.refuse('bare', 'POST', '/snapshot_groups', writable, 400, /^config.read_only: /);
      await context.refuse('bare', 'POST', '/snapshot_groups', { name: 'n' }, 400, /^volume_group_id: /);
    });
  });

  describe('replication partners', () => {
    it.each(DIALECTS)('%s: there are none', async dialect => {
      expect(await context.ok(dialect, 'GET', '/replication_partners')).toEqual([]);
      await context.refuse(dialect, 'GET', '/replication_partners?name=dr', undefined, 404, 'dr');
      await context.refuse(dialect, 'GET', `/replication_partners/${randomUUID()}`, undefined, 404);
    });
  });
}
