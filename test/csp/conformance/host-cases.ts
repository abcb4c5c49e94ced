import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Context, DIALECTS } from '#test/csp/conformance/context';

export function hostCases(context: Context): void {
  describe('hosts', () => {
    it.each(DIALECTS)('%s: are what was registered, by id and by uuid', async dialect => {
      const body = context.hostBody({
        wwpns: ['10:00:00:90:fa:42:41:01'],
        nqns: ['nqn.2014-08.org.nvmexpress:uuid:1'],
      });
      const host = await context.ok(dialect, 'POST', '/hosts', body);
      expect(host).toMatchObject({ ...body, id: expect.any(String) });
      expect(await context.ok(dialect, 'GET', `/hosts/${host.id}`)).toEqual(host);
      expect(await context.ok(dialect, 'GET', `/hosts/${body.uuid}`)).toEqual(host);
      expect(await context.ok(dialect, 'GET', `/hosts?uuid=${body.uuid}`)).toEqual([host]);
      expect(await context.ok(dialect, 'GET', '/hosts')).toContainEqual(host);
      await context.ok(dialect, 'DELETE', `/hosts/${host.id}`);
      await context.refuse(dialect, 'GET', `/hosts/${host.id}`, undefined, 404);
      await context.refuse(dialect, 'DELETE', `/hosts/${host.id}`, undefined, 404);
      expect(await context.ok(dialect, 'GET', `/hosts?uuid=${body.uuid}`)).toEqual([]);
    });

    it('registered again are replaced, and keep their id', async () => {
      const body = context.hostBody({ chap_user: 'node-1', chap_password: 'twelve chars'.replace(' ', '-') });
      const first = await context.ok('bare', 'POST', '/hosts', body);
      const again = { uuid: body.uuid, name: context.name('node'), iqns: ['eui.02004567A425678D'], networks: ['::1'] };
      const second = await context.ok('bare', 'POST', '/hosts', again);
      expect(second).toMatchObject({ ...again, id: first.id, wwpns: [] });
      expect(second).not.toHaveProperty('chap_user');
      await context.ok('bare', 'DELETE', `/hosts?uuid=${body.uuid}`);
    });

    it('registered by twenty callers at once are one', async () => {
      const body = context.hostBody();
      const all = await Promise.all(Array.from({ length: 20 }, () => context.ok('bare', 'POST', '/hosts', body)));
      expect(new Set(all.map(({ id }) => id)).size).toBe(1);
      expect(await context.ok('bare', 'GET', `/hosts?uuid=${body.uuid}`)).toHaveLength(1);
    });

    it('answer no password', async () => {
      const body = context.hostBody({ chap_user: 'node-2', chap_password: 'canary-46-rt' });
      const answer = await context.ask('bare', 'POST', '/hosts', { body });
      expect(answer).toMatchObject({ status: 200, body: { chap_user: 'node-2' } });
      expect(answer.text).not.toContain('canary');
      expect((await context.ask('bare', 'GET', `/hosts/${answer.body.id}`)).text).not.toContain('canary');
    });

    it.each([
      ['iqns', { iqns: undefined }],
      ['iqns', { iqns: [], wwpns: [], nqns: null }],
      ['iqns.0', { iqns: ['host-1'] }],
      ['iqns.0', { iqns: ['iqn.2019-13.com.example:a'] }],
      ['iqns.0', { iqns: ['iqn.2019-07.com.example:a b'] }],
      ['iqns.0', { iqns: ['eui.123'] }],
      ['iqns.1', { iqns: ['naa.52004567BA64678D', 'naa.1'] }],
      ['iqns.0', { iqns: [`iqn.2019-07.com.example:${'a'.repeat(223)}`] }],
      ['iqns', { iqns: 'iqn.2019-07.com.example:a' }],
      ['iqns', { iqns: Array.from({ length: 65 }, (_, n) => `iqn.2019-07.com.example:${n}`) }],
      ['wwpns.0', { wwpns: ['10:00'] }],
      ['nqns.0', { nqns: ['iqn.2019-07.com.example:a'] }],
      ['networks.0', { networks: ['everywhere'] }],
      ['networks.0', { networks: ['192.0.2.2/33'] }],
      ['uuid', { uuid: undefined }],
      ['uuid', { uuid: '' }],
      ['uuid', { uuid: '{"uuid":"a"}' }],
      ['uuid', { uuid: 'a'.repeat(300) }],
      ['name', { name: '' }],
      ['name', { name: 'n'.repeat(300) }],
      ['chap_user', { chap_user: 'no blanks', chap_password: '123456789012' }],
      ['chap_user', { chap_password: '123456789012' }],
      ['chap_password', { chap_user: 'user' }],
      ['chap_password', { chap_user: 'user', chap_password: '12345678901' }],
      ['chap_password', { chap_user: 'user', chap_password: '12345678901234567' }],
      ['chap_password', { chap_user: 'user', chap_password: 123456789012 }],
    ])('with a wrong %s are refused: %j', async (field, wrong) => {
      const body = context.hostBody(wrong);
      const { text } = await context.refuse('bare', 'POST', '/hosts', body, 400, new RegExp(`^${field}: `));
      expect(text).not.toContain('12345678901');
      if (typeof body.uuid === 'string' && body.uuid.length === 36)
        expect(await context.ok('bare', 'GET', `/hosts?uuid=${body.uuid}`)).toEqual([]);
    });

    it('that have volumes stay', async () => {
      const host = await context.host('bare');
      const volume = await context.volume('bare');
      const target = { host_id: host.id, access_protocol: 'iscsi' };
      await context.ok('bare', 'PUT', `/volumes/${volume.id}/actions/publish`, target);
      await context.refuse('bare', 'DELETE', `/hosts/${host.id}`, undefined, 409);
      await context.ok('bare', 'PUT', `/volumes/${volume.id}/actions/unpublish`, { host_id: host.id }, 204);
      await context.ok('bare', 'DELETE', `/hosts/${host.id}`);
      await context.ok('bare', 'DELETE', `/volumes/${volume.id}`);
    });

    it('with a uuid that nobody can have are none', async () => {
      for (const uuid of ['', '%00', 'a%20b', 'x'.repeat(300)])
        expect(await context.ok('bare', 'GET', `/hosts?uuid=${uuid}`)).toEqual([]);
    });

    it('without a uuid in the query are not deleted', async () => {
      await context.refuse('bare', 'DELETE', '/hosts', undefined, 400, 'uuid');
      await context.refuse('bare', 'DELETE', '/hosts?uuid=', undefined, 400, 'uuid');
      await context.refuse('bare', 'DELETE', `/hosts?uuid=${randomUUID()}`, undefined, 404);
    });
  });
}
