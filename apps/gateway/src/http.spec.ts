import 'reflect-metadata';
import { maxHeaderSize } from 'node:http';
import { type AddressInfo, createConnection } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { Body, Controller, Delete, type DynamicModule, Module, Post } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Health } from '#platform/health/health';
import { createHttp } from './http.js';

@Controller('probe')
class ProbeController {
  @Post()
  create(@Body() body: unknown) {
    return { got: body };
  }

  @Delete()
  remove(@Body() body: unknown) {
    return { body: body === undefined ? 'none' : body };
  }
}

@Module({})
class ProbeModule {}
const probe: DynamicModule = { module: ProbeModule, controllers: [ProbeController] };

describe('the HTTP door', () => {
  const health = new Health();
  let app: NestFastifyApplication;
  beforeAll(async () => {
    app = await createHttp({ health, imports: [probe] });
  });
  afterAll(() => app.close());

  const send = async (method: 'GET' | 'POST' | 'DELETE', url: string, payload?: string, type = 'application/json') => {
    const reply = await app.inject({ method, url, payload: payload ?? '', headers: { 'content-type': type } });
    return { status: reply.statusCode, body: reply.body, type: reply.headers['content-type'] };
  };

  it('says alive, ready and metrics', async () => {
    expect(await send('GET', '/livez')).toMatchObject({ status: 200, body: `{"alive":true,"pid":${process.pid}}\n` });
    expect(await send('GET', '/readyz')).toMatchObject({ status: 503, body: expect.stringContaining('"starting"') });
    health.setStarted();
    expect(await send('GET', '/readyz')).toMatchObject({ status: 200, type: expect.stringContaining('json') });
    const metrics = await send('GET', '/metrics');
    expect(metrics.type).toContain('text/plain');
    expect(metrics.body).toContain('trivet_lease_lost_total');
  });

  it('serves the reference of the API without a login, packed for who takes that, with nothing let in', async () => {
    const get = (encoding: string) =>
      app.inject({ method: 'GET', url: '/docs', headers: { 'accept-encoding': encoding } });
    const plain = await get('identity');
    expect(plain.statusCode).toBe(200);
    expect(plain.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(plain.headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-[^']+';/);
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(plain.body).toContain('id="createVolume"');
    const packed = await get('br, gzip');
    expect(packed.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(packed.rawPayload).toString()).toBe(plain.body);
    expect((await get('gzip;q=0')).headers['content-encoding']).toBeUndefined();
  });

  it('takes an empty body under a JSON content type', async () => {
    expect(await send('DELETE', '/probe')).toMatchObject({ status: 200, body: '{"body":"none"}' });
    expect(await send('DELETE', '/probe', '{"a":1}')).toMatchObject({ body: '{"body":{"a":1}}' });
  });

  it('refuses what is not JSON, and JSON that is broken', async () => {
    expect((await send('POST', '/probe', '{"name":')).status).toBe(400);
    expect((await send('POST', '/probe', 'name=a', 'application/x-www-form-urlencoded')).status).toBe(415);
    expect((await send('POST', '/probe', 'a', 'text/plain')).status).toBe(415);
  });

  it('refuses a body that is too large', async () => {
    expect((await send('POST', '/probe', JSON.stringify({ name: 'x'.repeat(1024 * 1024) }))).status).toBe(413);
  });

  it('keeps whole numbers beyond 2^53, as text', async () => {
    const { body } = await send(
      'DELETE',
      '/probe',
      '{"a":9007199254740993,"b":-9223372036854775808,"c":9007199254740991}',
    );
    expect(JSON.parse(body)).toEqual({
      body: { a: '9007199254740993', b: '-9223372036854775808', c: 9007199254740991 },
    });
    expect((await send('DELETE', '/probe', '{"a":1e21,"b":"9007199254740993"}')).body).toContain('1e+21');
  });

  it('knows no path that cannot be decoded', async () => {
    expect(await send('GET', '/livez/%zz')).toMatchObject({ status: 404, body: expect.stringContaining('"errors"') });
  });

  it('takes a slash at the end, and two for one', async () => {
    expect((await send('GET', '/livez/')).status).toBe(200);
    expect((await send('GET', '//livez')).status).toBe(200);
  });

  it('answers in words what is not HTTP, and what is too long', async () => {
    await app.listen(0, '127.0.0.1');
    const { port } = app.getHttpServer().address() as AddressInfo;
    const answerTo = async (request: string): Promise<[head: string, body: unknown]> => {
      const socket = createConnection(port, '127.0.0.1');
      socket.write(request);
      let text = '';
      for await (const chunk of socket) text += chunk;
      const [head, body] = text.split('\r\n\r\n');
      expect(head).toContain('Content-Type: application/problem+json');
      return [head!.split('\r\n')[0]!, JSON.parse(body!)];
    };
    const refusal = (status: number, code: string, words: string, detail: string) => [
      `HTTP/1.1 ${status} ${words}`,
      expect.objectContaining({
        ...{ status, code, detail, instance: expect.any(String), type: `/docs/problems#${code}`, retryable: false },
        // What clients of CSP read.
        errors: [{ pointer: '/header', code: words, message: detail }],
      }),
    ];
    expect(await answerTo('GET /a b HTTP/1.1\r\n\r\n')).toEqual(
      refusal(400, 'invalid_argument', 'Bad Request', 'the request is not valid HTTP'),
    );
    const long = `the address and the headers of the request have more than ${maxHeaderSize} bytes`;
    for (const path of ['/livez', '/api/v1/operations'])
      expect(await answerTo(`GET ${path} HTTP/1.1\r\nx-long: ${'x'.repeat(maxHeaderSize)}\r\n\r\n`)).toEqual(
        refusal(431, 'headers_too_large', 'Request Header Fields Too Large', long),
      );
  });
});
