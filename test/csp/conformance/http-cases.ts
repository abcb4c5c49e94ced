import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Context, DIALECTS, expectRefusal, MIB } from '#test/csp/conformance/context';
import { ROUTES } from '#test/csp/conformance/routes';

export function httpCases(context: Context): void {
  describe('HTTP', () => {
    it.each(['/containers/v1', '//containers//v1', '/CONTEXT/containers/v1', '/CONTEXT//containers/v1'])(
      'is served below %s, with and without a slash at the end',
      async given => {
        const prefix = given.replace('CONTEXT', context.target.contextPath);
        const headers = { 'x-auth-token': await context.token('bare') };
        for (const path of ['/replication_partners', '/replication_partners/', '/snapshots/?volume_id=none'])
          expect(await context.http.ask('GET', prefix + path, { headers })).toMatchObject({ status: 200, body: [] });
      },
    );

    it.each([
      ['GET', '/nothing'],
      ['GET', ''],
      ['PATCH', '/volumes'],
      ['POST', `/volumes/${randomUUID()}`],
      ['DELETE', '/volumes'],
      ['PUT', `/volumes/${randomUUID()}/actions/explode`],
      ['GET', `/volumes/${randomUUID()}/actions/publish`],
      ['GET', '/tokens'],
      ['DELETE', '/snapshots'],
    ])('has no %s %s', async (method, path) => {
      for (const dialect of DIALECTS) expectRefusal(await context.ask(dialect, method, path), 404);
    });

    it.each([
      'reallyfakevolumeid',
      'a%2Fb',
      '..%2F..',
      '%zz',
      '%00',
      '%F0%9F%94%92',
      'x'.repeat(300),
      `${randomUUID()}x`,
    ])('has no volume or host %s', async id => {
      for (const resource of ['volumes', 'hosts'])
        for (const method of ['GET', 'DELETE'])
          await context.refuse('bare', method, `/${resource}/${id}`, undefined, 404);
    });

    it.each(ROUTES.filter(({ body }) => body))('$method $path takes only a JSON object', async ({ method, path }) => {
      const ask = (body: string | undefined, type = 'application/json') =>
        context.ask('bare', method, path, { body, headers: { 'content-type': type } });
      for (const body of ['{"name":', 'name=a', '[]', '"text"', '7', 'null', undefined, '{"data":[]}', '{"data":null}'])
        expectRefusal(await ask(body), 400);
      expectRefusal(await ask('{}', 'text/plain'), 415);
      expectRefusal(await ask(`{"name":"${'x'.repeat(MIB)}"}`), 413);
    });

    it.each(ROUTES.filter(({ body }) => body))('$method $path and a property that nobody knows', async route => {
      const { method, path, body } = route;
      for (const dialect of DIALECTS) {
        const asked = { ...body, unheard_of: 'x' };
        const answer = await context.ask(dialect, method, path, { body: context.wrap(dialect, asked) });
        if (method === 'PUT') expectRefusal(answer, 400, "Unexpected argument 'unheard_of'");
        else {
          // Newer drivers send more than the specification knows: the answer is that without it.
          const without = await context.ask(dialect, method, path, { body: context.wrap(dialect, body) });
          expect(answer.status).toBe(without.status);
          expect(answer.text).not.toContain('unheard_of');
        }
      }
    });

    it('is not misled by the names of JavaScript', async () => {
      const name = context.name('pvc');
      const create = (config: string) =>
        context.ask('bare', 'POST', '/volumes', { body: `{"name":"${name}","size":${MIB},"config":${config}}` });
      const { status, body } = await create('{"constructor":"c","__proto__":"p"}');
      expect(status).toBe(200);
      const kept = Object.entries(body.config).filter(([key]) => ['constructor', '__proto__'].includes(key));
      expect(Object.fromEntries(kept.map(([key, value]) => [`${key}:`, value]))).toEqual({
        'constructor:': 'c',
        '__proto__:': 'p',
      });
      await context.ok('bare', 'DELETE', `/volumes/${body.id}`);
    });

    it('keeps connections, and closes where it is asked to', async () => {
      const kept = await context.ask('bare', 'GET', '/replication_partners');
      expect(kept.headers.connection).not.toBe('close');
      const closed = await context.ask('bare', 'GET', '/replication_partners', { headers: { connection: 'close' } });
      expect(closed).toMatchObject({ status: 200, headers: { connection: 'close' } });
    });
  });
}
