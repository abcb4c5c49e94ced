import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Context, DIALECTS } from '#test/csp/conformance/context';

export function publishCases(context: Context): void {
  const publish = (dialect: (typeof DIALECTS)[number], id: string, body: object) =>
    context.ok(dialect, 'PUT', `/volumes/${id}/actions/publish`, { access_protocol: 'iscsi', ...body });
  const unpublish = (dialect: (typeof DIALECTS)[number], id: string, body: object) =>
    context.ok(dialect, 'PUT', `/volumes/${id}/actions/unpublish`, body, 204);
  const isPublished = async (id: string) => (await context.ok('bare', 'GET', `/volumes/${id}`)).published;

  describe('publish and unpublish', () => {
    it.each(DIALECTS)('%s: say where the disk is, in the words of both', async dialect => {
      const volume = await context.volume(dialect);
      const host = await context.host(dialect);
      const reply = await publish(dialect, volume.id, { host_uuid: host.uuid });
      expect(reply).toEqual({
        access_protocol: 'iscsi',
        lun_id: expect.any(Number),
        serial_number: expect.stringMatching(/^[0-9a-f]{16,32}$/),
        target_name: expect.stringMatching(/^iqn\./),
        target_names: reply.discovery_ips.map(() => reply.target_name),
        discovery_ip: expect.any(String),
        discovery_ips: expect.arrayContaining([reply.discovery_ip]),
      });
      expect(await publish(dialect, volume.id, { host_id: host.id })).toEqual(reply);
      expect(await isPublished(volume.id)).toBe(true);
      await unpublish(dialect, volume.id, { host_id: host.id });
      await unpublish(dialect, volume.id, { host_uuid: host.uuid });
      expect(await isPublished(volume.id)).toBe(false);
      await context.ok(dialect, 'DELETE', `/volumes/${volume.id}`);
    });

    it('give CHAP to a host that has it', async () => {
      const volume = await context.volume('bare');
      const chap = { chap_user: context.name('chap'), chap_password: 'pass-word-1234' };
      const host = await context.host('bare', chap);
      expect(await publish('bare', volume.id, { host_uuid: host.uuid })).toMatchObject(chap);
      await unpublish('bare', volume.id, { host_uuid: host.uuid });
    });

    it('take the node document for its uuid', async () => {
      const volume = await context.volume('bare');
      const node = context.hostBody();
      await context.ok('bare', 'POST', '/hosts', node);
      const host_uuid = JSON.stringify(node);
      await publish('bare', volume.id, { host_uuid });
      await unpublish('bare', volume.id, { host_uuid: ` ${JSON.stringify(node, null, 2)}` });
      expect(await isPublished(volume.id)).toBe(false);
    });

    it('take a node document that names no host for none', async () => {
      const volume = await context.volume('bare');
      for (const document of [
        '{"name":"n"}',
        '{"uuid":7}',
        '{"uuid":""}',
        '{broken',
        '{}',
        '{"uuid":"a\\u0000"}',
        '{"uuid":"a b"}',
      ]) {
        const body = { host_uuid: document, access_protocol: 'iscsi' };
        await context.refuse('bare', 'PUT', `/volumes/${volume.id}/actions/publish`, body, 404);
        await unpublish('bare', volume.id, { host_uuid: document });
      }
    });

    it('stay published until the last host has left', async () => {
      const volume = await context.volume('bare');
      const [one, two] = [await context.host('bare'), await context.host('bare')];
      await publish('bare', volume.id, { host_uuid: one.uuid });
      await publish('bare', volume.id, { host_uuid: two.uuid });
      await unpublish('bare', volume.id, { host_uuid: one.uuid });
      expect(await isPublished(volume.id)).toBe(true);
      const refusal = await context.refuse('data', 'DELETE', `/volumes/${volume.id}`, undefined, 400);
      expect(refusal.body.errors).toEqual([{ code: 'Bad Request', message: 'Cannot delete a published volume' }]);
      await unpublish('bare', volume.id, { host_uuid: two.uuid });
      await context.ok('bare', 'DELETE', `/volumes/${volume.id}`);
    });

    it.each([false, 'false'])('with multi_initiator %j: to one host at a time', async multi_initiator => {
      const volume = await context.volume('bare', { config: { multi_initiator } });
      const [one, two] = [await context.host('bare'), await context.host('bare')];
      const first = await publish('bare', volume.id, { host_uuid: one.uuid });
      expect(await publish('bare', volume.id, { host_uuid: one.uuid })).toEqual(first);
      const path = `/volumes/${volume.id}/actions/publish`;
      const second = { host_uuid: two.uuid, access_protocol: 'iscsi' };
      await context.refuse('bare', 'PUT', path, second, 409, /of one host at a time \(multi_initiator: false\)/);
      await unpublish('bare', volume.id, { host_uuid: one.uuid });
      await publish('bare', volume.id, second);
      await context.ok('bare', 'PUT', `/volumes/${volume.id}`, { config: { multi_initiator: true } });
      await publish('bare', volume.id, { host_uuid: one.uuid });
      for (const host_uuid of [one.uuid, two.uuid]) await unpublish('bare', volume.id, { host_uuid });
    });

    it('end with a deletion by force', async () => {
      const volume = await context.volume('bare');
      const host = await context.host('bare');
      await publish('bare', volume.id, { host_uuid: host.uuid });
      await context.refuse('bare', 'DELETE', `/volumes/${volume.id}?force=maybe`, undefined, 400, /^force: /);
      await context.ok('bare', 'DELETE', `/volumes/${volume.id}?force=true`);
      await context.refuse('bare', 'GET', `/volumes/${volume.id}`, undefined, 404);
      await context.ok('bare', 'DELETE', `/hosts/${host.id}`);
    });

    it('grow while published', async () => {
      const volume = await context.volume('bare');
      const host = await context.host('bare');
      await publish('bare', volume.id, { host_uuid: host.uuid });
      const size = volume.size * 2;
      expect(await context.ok('bare', 'PUT', `/volumes/${volume.id}`, { size })).toMatchObject({
        size,
        published: true,
      });
      await unpublish('bare', volume.id, { host_uuid: host.uuid });
    });

    it('of an unknown host: 404, and 204', async () => {
      const volume = await context.volume('bare');
      for (const host_uuid of [randomUUID(), 'no such host', 'x'.repeat(300), 'a/b']) {
        const body = { host_uuid, access_protocol: 'iscsi' };
        await context.refuse('bare', 'PUT', `/volumes/${volume.id}/actions/publish`, body, 404);
        await unpublish('bare', volume.id, { host_uuid });
      }
      expect(await isPublished(volume.id)).toBe(false);
    });

    it('of an unknown volume: 404', async () => {
      const host = await context.host('bare');
      for (const id of [randomUUID(), 'reallyfakevolumeid', 'a%2Fb', 'x'.repeat(300)]) {
        const body = { host_uuid: host.uuid, access_protocol: 'iscsi' };
        await context.refuse('bare', 'PUT', `/volumes/${id}/actions/publish`, body, 404);
        await context.refuse('bare', 'PUT', `/volumes/${id}/actions/unpublish`, { host_uuid: host.uuid }, 404);
      }
    });

    it.each([
      ['access_protocol', { access_protocol: undefined }],
      ['access_protocol', { access_protocol: '' }],
      ['access_protocol', { access_protocol: 'smb' }],
      ['access_protocol', { access_protocol: 'fc' }],
      ['access_protocol', { access_protocol: 7 }],
      ['host_uuid', { host_uuid: undefined }],
      ['host_uuid', { host_uuid: '' }],
      ['host_uuid', { host_uuid: 7 }],
      ['access_protocol', { host_uuid: undefined, name: 'v', access_protocol: 'nfs', access_control_list: [] }],
      ["Unexpected argument 'read_only'", { read_only: true }],
      ["Unexpected argument 'access_control_list'", { access_control_list: ['a'] }],
    ])('refuse a wrong %s: %j', async (about, wrong) => {
      const volume = await context.volume('bare');
      const host = await context.host('bare');
      const body = { host_uuid: host.uuid, access_protocol: 'iscsi', ...wrong };
      await context.refuse('bare', 'PUT', `/volumes/${volume.id}/actions/publish`, body, 400, about);
      expect(await isPublished(volume.id)).toBe(false);
    });
  });
}
