import { afterEach, describe, expect, it } from 'vitest';
import { ConfigError } from '#platform/config/config';
import { StorageError } from '#platform/errors';
import { Health } from '#platform/health/health';
import { type HealthServer, startHealthServer } from '#platform/health/health-http';

const servers: HealthServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map(server => server.close()));
});

async function serve(health: Health) {
  const server = await startHealthServer(health, { host: '127.0.0.1', port: 0 }, 'TRIVET_X_LISTEN');
  servers.push(server);
  return {
    port: server.port,
    get: async (path: string, method = 'GET') => {
      const response = await fetch(`http://127.0.0.1:${server.port}${path}`, {
        method,
        headers: { connection: 'close' },
      });
      const type = response.headers.get('content-type') ?? '';
      const text = await response.text();
      return {
        status: response.status,
        type,
        text,
        body: type.includes('json') && text ? JSON.parse(text) : undefined,
      };
    },
  };
}

describe('health over HTTP', () => {
  it('is alive at once, ready when started and every check passes, and not any more when stopping', async () => {
    const health = new Health();
    let reason: string | undefined = 'not bound yet';
    health.addCheck('database', async () => undefined);
    health.addCheck('cosi', () => reason);
    const { get } = await serve(health);
    expect(await get('/livez')).toMatchObject({ status: 200, body: { alive: true, pid: process.pid } });
    expect(await get('/readyz')).toMatchObject({ status: 503, body: { ready: false, state: 'starting' } });
    health.setStarted();
    expect(await get('/readyz')).toMatchObject({
      status: 503,
      body: {
        state: 'not_ready',
        checks: { database: { state: 'ok' }, cosi: { state: 'failed', reason: 'not bound yet' } },
      },
    });
    reason = undefined;
    expect(await get('/readyz?verbose')).toMatchObject({ status: 200, body: { ready: true, state: 'ready' } });
    expect((await get('/metrics')).text).toContain('trivet_ready{check="cosi"} 1');
    health.setStopping();
    health.setStarted();
    expect(await get('/readyz')).toMatchObject({ status: 503, body: { state: 'stopping' } });
    expect((await get('/livez')).status).toBe(200);
  });

  it('says why a check failed, and nothing that a driver said', async () => {
    const health = new Health();
    health.setStarted();
    health.addCheck('own', () => Promise.reject(new StorageError('unavailable', 'the database cannot be reached')));
    health.addCheck('driver', () =>
      Promise.reject(Object.assign(new Error('cAnArY 10.1.2.3'), { code: 'ECONNREFUSED' })),
    );
    health.addCheck('thrown', () => {
      throw new Error('cAnArY');
    });
    const { get } = await serve(health);
    const { status, body, text } = await get('/readyz');
    expect(status).toBe(503);
    expect(body.checks).toEqual({
      own: { state: 'failed', reason: 'the database cannot be reached' },
      driver: { state: 'failed', reason: 'ECONNREFUSED' },
      thrown: { state: 'failed', reason: 'failed' },
    });
    expect(text).not.toContain('cAnArY');
  });

  it('answers other paths and methods with an error', async () => {
    const { get } = await serve(new Health());
    expect((await get('/')).status).toBe(404);
    expect((await get('/toString')).status).toBe(404);
    expect((await get('/livez', 'POST')).status).toBe(405);
    expect(await get('/livez', 'HEAD')).toMatchObject({ status: 200, text: '' });
  });

  it('refuses an address that is taken with the name of the variable', async () => {
    const { port } = await serve(new Health());
    const second = startHealthServer(new Health(), { host: '127.0.0.1', port }, 'TRIVET_X_LISTEN');
    await expect(second).rejects.toThrow(ConfigError);
    await expect(second).rejects.toThrow(/TRIVET_X_LISTEN.*in use/);
  });
});

describe('Health', () => {
  it('bounds a check that hangs, and shares one run between callers', async () => {
    const health = new Health(20);
    health.setStarted();
    let runs = 0;
    let aborted = false;
    health.addCheck('hangs', signal => {
      runs++;
      signal.addEventListener('abort', () => {
        aborted = true;
      });
      return new Promise<undefined>(() => {});
    });
    const [one, two] = await Promise.all([health.readiness(), health.readiness()]);
    expect(one).toEqual(two);
    expect(one.checks.hangs).toEqual({ state: 'failed', reason: 'no answer within 20 ms' });
    expect({ runs, aborted }).toEqual({ runs: 1, aborted: true });
  });

  it('is not ready by what was asked before it was started', async () => {
    const health = new Health();
    let answer = (): void => {};
    const asked = new Promise<undefined>(resolve => {
      answer = () => resolve(undefined);
    });
    health.addCheck('database', () => asked);
    const early = health.readiness();
    health.addCheck('pools', () => 'no look yet');
    health.setStarted();
    answer();
    expect(await early).toMatchObject({ ready: false, state: 'starting' });
    expect(await health.readiness()).toMatchObject({ ready: false, state: 'not_ready' });
  });

  it('shows a check that is not required, and is ready without it', async () => {
    const health = new Health();
    health.setStarted();
    health.addCheck('gateways', () => 'no gateway is ready', { isRequired: false });
    expect(await health.readiness()).toEqual({
      ready: true,
      state: 'ready',
      checks: { gateways: { state: 'failed', reason: 'no gateway is ready' } },
    });
    health.addCheck('database', () => 'away');
    expect(await health.readiness()).toMatchObject({ ready: false, state: 'not_ready' });
  });

  it('refuses two checks of one name', () => {
    const health = new Health();
    health.addCheck('a', () => undefined);
    expect(() => health.addCheck('a', () => undefined)).toThrow(/two readiness checks/);
  });

  it('tells followers before whoever asked', async () => {
    const health = new Health();
    const heard: boolean[] = [];
    health.follow(ready => heard.push(ready));
    await health.readiness();
    health.setStarted();
    await health.readiness();
    expect(heard).toEqual([false, true]);
    health.setStopping();
    await health.readiness();
    expect(heard).toEqual([false, true, false]);
  });
});
