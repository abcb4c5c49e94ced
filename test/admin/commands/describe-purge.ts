import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { pausedWorkers } from '#test/admin/resource-calls';
import { until } from '#test/support/parts';
import type { CommandLine } from './command-line.js';

/** What happens before a call is passed on; an answer instead of it when that is a status. */
type Before = (call: string) => Promise<number | undefined>;

/** The gateway, as one sees it whose calls others come between. */
async function between(target: string, before: Before) {
  const pass = async (incoming: IncomingMessage, reply: ServerResponse): Promise<void> => {
    const { method, url = '', headers } = incoming;
    const status = await before(`${method} ${url}`);
    if (status !== undefined) {
      reply.writeHead(status).end();
      return;
    }
    const through = request(`${target}${url}`, { method, headers }, answer => {
      reply.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(reply);
    });
    incoming.pipe(through);
  };
  const server = createServer((incoming, reply) => void pass(incoming, reply));
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

/** A recycle bin that others change while it is emptied. */
export function describePurge(line: CommandLine): void {
  const path = (id: string) => `/tenants/acme/volumes/${id}`;
  const remove = (id: string, wait = 30) =>
    line.house.change(line.house.acme.admin, 'DELETE', path(id), { headers: { prefer: `wait=${wait}` } });
  const binned = async (name: string): Promise<string> => {
    const made = await line.house.call(line.house.acme.operator, 'POST', '/tenants/acme/volumes', {
      body: { name, size: '1048576' },
      headers: { prefer: 'wait=30' },
    });
    expect((await remove(made.body.id)).status).toBe(204);
    return made.body.id;
  };
  const gone = async (ids: readonly string[]) => {
    const found = "SELECT FROM trivet.volume WHERE id = ANY ($1) AND state = 'gone'";
    return (await line.house.query(found, [ids])).length === ids.length;
  };
  const purgeAll = async (before: Before, ...options: string[]) => {
    await using gateway = await between(line.house.appliance.cspUrl, before);
    const env = { TRIVET_ADMIN_URL: gateway.url };
    return await line.run(['volume', 'purge', '--all', '--tenant', 'acme', ...options], { env });
  };

  it('trivet volume purge --all passes over what is in the bin no more', async () => {
    const [ended, ending, back, left] = [
      await binned('b1'),
      await binned('b2'),
      await binned('b3'),
      await binned('b4'),
    ];
    let paused: AsyncDisposable | undefined;
    const outcome = await purgeAll(async call => {
      // All of them are listed by now.
      if (paused === undefined && /^GET .*\/volumes\/[\w-]+$/.test(call)) {
        await remove(ended);
        await until('one is gone', () => gone([ended]));
        paused = await pausedWorkers(line.house);
        await remove(ending, 0);
      }
      if (call.startsWith('DELETE') && call.includes(back))
        await line.house.call(line.house.acme.admin, 'POST', `${path(back)}/restore`, { body: {} });
      return undefined;
    }, '--json').finally(() => paused?.[Symbol.asyncDispose]());
    expect(outcome).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(outcome.stdout)).toEqual([left]);
    const found = await line.house.call(line.house.acme.admin, 'GET', path(back));
    expect(found.body.state).toBe('ready');
    await until('the others are gone', () => gone([ended, ending, left]));
    await remove(back);
    await line.trivet(['volume', 'purge', back, '--tenant', 'acme']);
    await until('all are gone', () => gone([back]));
  });

  it('trivet volume purge --json tells what is purged also when a later one fails', async () => {
    const ids = [await binned('f1'), await binned('f2'), await binned('f3')];
    const asked: string[] = [];
    const outcome = await purgeAll(async call => {
      if (call.startsWith('DELETE')) asked.push(ids.find(id => call.includes(id))!);
      return call.startsWith('DELETE') && asked.length === 2 ? 500 : undefined;
    }, '--json');
    expect(outcome).toMatchObject({ code: 69, stderr: expect.stringContaining('answered 500') });
    expect(JSON.parse(outcome.stdout)).toEqual([asked[0]]);
    await line.trivet(['volume', 'purge', '--all', '--tenant', 'acme']);
    await until('all are gone', () => gone(ids));
  });
}
