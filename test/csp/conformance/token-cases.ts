import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Context, DIALECTS, expectRefusal } from '#test/csp/conformance/context';
import { ROUTES } from '#test/csp/conformance/routes';

export function tokenCases(context: Context): void {
  describe('tokens', () => {
    it.each(DIALECTS)('%s: a login answers 200 in its own envelope', async dialect => {
      const { status, body } = await context.login(dialect);
      expect(status).toBe(200);
      const token = dialect === 'data' ? body.data : body;
      expect(Object.keys(body)).toEqual(dialect === 'data' ? ['data'] : Object.keys(token));
      expect(token).toEqual({
        id: expect.stringMatching(/./),
        username: context.target.username,
        array_ip: context.target.arrayIp,
        creation_time: expect.any(Number),
        expiry_time: expect.any(Number),
        session_token: expect.stringMatching(/^\S{32,}$/),
      });
      expect(Number.isInteger(token.creation_time)).toBe(true);
      expect(Math.abs(token.creation_time - Date.now() / 1000)).toBeLessThan(60);
      expect(token.expiry_time).toBeGreaterThan(token.creation_time);
    });

    it('takes an array_ip that is empty, absent or null for the default', async () => {
      for (const array_ip of ['', undefined, null]) {
        const { status, body } = await context.login('bare', { array_ip });
        expect({ status, array_ip: body.array_ip }).toEqual({ status: 200, array_ip: '' });
      }
    });

    it('refuses with 401 and a body whoever is not known', async () => {
      for (const wrong of [{ password: 'wrong' }, { username: context.name('nobody') }])
        expectRefusal(await context.login('data', wrong), 401);
    });

    it.each([
      ['username', { username: '' }],
      ['username', { username: 7 }],
      ['username', { username: undefined }],
      ['username', { username: 'a\u0000' }],
      ['password', { password: '' }],
      ['password', { password: undefined }],
      ['password', { password: ['a'] }],
      ['array_ip', { array_ip: 1 }],
      ['array_ip', { array_ip: 'no-such-backend' }],
    ])('refuses a wrong %s: %j', async (field, wrong) => {
      const answer = await context.login('bare', wrong);
      expectRefusal(answer, 400, field);
      expect(answer.text).not.toContain(context.target.password);
    });

    it('of one user live side by side, and end one by one', async () => {
      const [one, two] = [(await context.login('bare')).body, (await context.login('bare')).body];
      const see = async (token: string) =>
        (await context.http.ask('GET', '/containers/v1/hosts', { headers: { 'x-auth-token': token } })).status;
      const end = async (by: string, id: string) =>
        context.http.ask('DELETE', `/containers/v1/tokens/${id}`, { headers: { 'x-auth-token': by } });
      expect(await see(one.session_token)).toBe(200);
      expect(await end(two.session_token, one.id)).toMatchObject({ status: 204, text: '' });
      expect(await see(one.session_token)).toBe(401);
      expect(await see(two.session_token)).toBe(200);
      expectRefusal(await end(two.session_token, one.id), 404);
      expectRefusal(await end(two.session_token, randomUUID()), 404);
      expectRefusal(await end(two.session_token, 'no/such%20token%00'), 404);
      expect((await end(two.session_token, two.id)).status).toBe(204);
      expect(await end(two.session_token, two.id)).toMatchObject({ status: 401, text: '' });
    });

    it('decide over the envelope of replies, whatever the requests look like', async () => {
      const group = { name: context.name('group') };
      const wrapped = await context.ask('data', 'POST', '/volume_groups', { body: group });
      expect(wrapped).toMatchObject({ status: 200, body: { data: group } });
      const bare = await context.ask('bare', 'POST', '/volume_groups', { body: { data: group } });
      expect(bare).toMatchObject({ status: 200, body: { id: wrapped.body.data.id } });
      await context.ok('bare', 'DELETE', `/volume_groups/${bare.body.id}`);
    });

    it.each(ROUTES.filter(({ login }) => !login))(
      'without a valid one $method $path is 401, and empty',
      async route => {
        const none: Record<string, string> = {};
        for (const headers of [none, { 'x-auth-token': '' }, { 'x-auth-token': 'f'.repeat(64) }]) {
          const body = route.body && JSON.stringify(route.body);
          const answer = await context.http.ask(route.method, `/containers/v1${route.path}`, { headers, body });
          expect({ status: answer.status, text: answer.text }).toEqual({ status: 401, text: '' });
        }
      },
    );

    it('x-array-ip selects among the registered backends', async () => {
      const see = (value: string) => context.ask('bare', 'GET', '/hosts', { headers: { 'x-array-ip': value } });
      expect((await see(context.target.arrayIp)).status).toBe(200);
      expect((await see('')).status).toBe(200);
      expectRefusal(await see('10.255.255.1'), 400, 'x-array-ip');
    });
  });
}
