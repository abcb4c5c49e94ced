import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Context, MIB } from '#test/csp/conformance/context';
import { type DriverNode, RealDriver } from '#test/csp/driver-client';
import { RECORDING } from '#test/csp/driver-recording';

export function driverCases(context: Context): void {
  describe('the driver', () => {
    let driver: RealDriver;
    let node: DriverNode;
    beforeAll(() => {
      driver = openDriver();
      node = { ...context.hostBody(), chap_user: context.name('chap'), chap_password: 'pass-word-1234' };
    });
    function openDriver(): RealDriver {
      const { url, username, password, arrayIp } = context.target;
      return new RealDriver({ service: url, backend: arrayIp, username, password });
    }

    it('takes a volume through its life', async () => {
      const name = context.name('pvc');
      const made = await driver.createVolume(name, MIB, { limit_iops: '-1', 'csi.storage.k8s.io/pvc/name': 'data' });
      expect(made).toMatchObject({ name, size: MIB, published: false });
      expect(await driver.createVolume(name, MIB)).toEqual(made);
      await expect(driver.createVolume(name, 2 * MIB)).rejects.toMatchObject({ status: 409 });
      expect((await driver.volumes()).map(({ id }) => id)).toContain(made.id);

      const where = await driver.publish(made.id, node);
      expect(where).toMatchObject({ access_protocol: 'iscsi', chap_user: node.chap_user, targetScope: 'volume' });
      expect(where.target_names).toHaveLength(1);
      expect(where.discovery_ips).not.toEqual([]);
      expect(await driver.publish(made.id, node)).toEqual(where);
      expect(await driver.expand(made.id, 2 * MIB)).toBe(2 * MIB);
      expect(await driver.edit(made.id, { config: { destroy_on_delete: 'true' } })).toMatchObject({ published: true });
      await expect(driver.deleteVolume(made.id)).rejects.toThrow('published');

      await driver.unpublish(made.id, node);
      expect((await driver.volume(made.id))?.published).toBe(false);
      await driver.unpublish(made.id, node.uuid);
      await driver.deleteVolume(made.id);
      expect(await driver.volumeNamed(name)).toBeUndefined();
      await driver.deleteVolume(made.id);
    });

    it('takes snapshots, and restores them', async () => {
      const source = await driver.createVolume(context.name('pvc'), MIB);
      const name = context.name('snapshot');
      const snapshot = await driver.createSnapshot(source.id, name);
      expect(snapshot).toMatchObject({ name, volume_id: source.id, size: MIB, ready_to_use: true, in_use: false });
      expect(await driver.createSnapshot(source.id, name)).toEqual(snapshot);
      const other = await driver.createVolume(context.name('pvc'), MIB);
      await expect(driver.createSnapshot(other.id, name)).rejects.toMatchObject({ status: 409 });
      const restored = await driver.createVolume(context.name('pvc'), MIB, {}, { snapshotId: snapshot.id });
      expect(restored.base_snapshot_id).toBe(snapshot.id);
      await expect(driver.deleteVolume(source.id)).rejects.toThrow('snapshots attached');
      await driver.deleteVolume(restored.id);
      await driver.deleteSnapshot(snapshot.id);
      expect(await driver.snapshotsOf(source.id)).toEqual([]);
      for (const { id } of [source, other]) await driver.deleteVolume(id);
    });

    it('clones a volume, and deletes the source first', async () => {
      const source = await driver.createVolume(context.name('pvc'), MIB);
      const clone = await driver.createVolume(context.name('pvc'), 2 * MIB, {}, { volumeId: source.id });
      expect(clone.size).toBe(2 * MIB);
      expect(await driver.snapshotsOf(source.id, true)).toEqual([]);
      await driver.deleteVolume(source.id);
      expect(await driver.volume(clone.id)).toEqual(clone);
      await driver.deleteVolume(clone.id);
    });

    it('asks for what was never there', async () => {
      for (const id of ['reallyfakevolumeid', randomUUID(), 'a'.repeat(300)]) {
        expect(await driver.volume(id)).toBeUndefined();
        expect(await driver.snapshot(id)).toBeUndefined();
        expect(await driver.snapshotsOf(id)).toEqual([]);
        await driver.deleteVolume(id);
        await driver.deleteSnapshot(id);
      }
      expect(await driver.volumeNamed(context.name('nothing'))).toBeUndefined();
      expect(
        await driver.snapshotNamed('reallyfakevolumeid', 'snap-for-clone-2026-11-20T10:32:45+05:30'),
      ).toBeUndefined();
    });

    it('is answered as it was when its own program asked', async () => {
      const known = new Map([
        ['host', randomUUID()],
        ['iqn', node.iqns[0]!],
      ]);
      const filled = (text: string) =>
        text.replace(/<([a-z ]+)>/g, (_, key: string) => {
          if (!known.has(key)) known.set(key, context.name(key.replace(' ', '-')));
          return known.get(key)!;
        });
      for (const { method, path, body, status, learns } of RECORDING) {
        const sent = body && JSON.parse(filled(JSON.stringify(body)));
        const answer = await context.ask('bare', method, filled(path), { body: sent });
        expect([method, path, answer.status, answer.text], `${method} ${path}`).toEqual([
          method,
          path,
          status,
          answer.text,
        ]);
        if (learns) known.set(learns, answer.body.id);
      }
    });

    it('loses its token, and goes on without noticing', async () => {
      const forgetful = openDriver();
      const volume = await forgetful.createVolume(context.name('pvc'), MIB);
      const { body } = await context.login('bare');
      // The session that it has now is ended behind its back.
      Object.assign(forgetful, { token: body.session_token });
      await context.http.ask('DELETE', `/containers/v1/tokens/${body.id}`, {
        headers: { 'x-auth-token': body.session_token },
      });
      const before = forgetful.logins;
      expect(await forgetful.volume(volume.id)).toEqual(volume);
      expect(forgetful.logins).toBe(before + 1);
      await forgetful.deleteVolume(volume.id);
    });
  });
}
