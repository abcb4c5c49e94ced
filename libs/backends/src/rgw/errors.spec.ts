/** The adapter against a server that answers badly or not at all. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { ObjectBackend } from '#backends/object-backend';
import { rgwKind } from '#backends/rgw/rgw-kind';
import { unleased } from '#platform/lease-signal';

const soon = () => unleased(AbortSignal.timeout(30_000));
const bucket = { name: 'photos', incarnation: '7d1f2a34-0000-4000-8000-000000000001' };
const spec = rgwKind.parseBucketParameters({});
const SECRET = 'a-secret-that-nobody-may-see';

describe('errors of the RGW adapter', () => {
  let server: Server | undefined;
  let backend: ObjectBackend | undefined;

  afterEach(async () => {
    backend?.close();
    server?.closeAllConnections();
    await new Promise(resolve => (server ? server.close(resolve) : resolve(undefined)));
  });

  async function facing(listener: RequestListener): Promise<ObjectBackend> {
    server = createServer(listener);
    await new Promise<void>(resolve => server!.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const config = rgwKind.parseConfig({ endpoint: `http://127.0.0.1:${port}`, ownerUid: 'owner' });
    const credentials = { accessKeyId: 'ADMIN', secretAccessKey: SECRET };
    backend = rgwKind.open(config, credentials, { applianceId: 'a', tenantId: 't' });
    return backend;
  }
  const json =
    (status: number, body: unknown): RequestListener =>
    (_, response) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };

  it.each([
    [403, 'InvalidAccessKeyId', 'unauthenticated'],
    [403, 'SignatureDoesNotMatch', 'unauthenticated'],
    [403, 'RequestTimeTooSkewed', 'unauthenticated'],
    [403, 'AccessDenied', 'permission_denied'],
    [403, 'UserSuspended', 'permission_denied'],
    [503, 'SlowDown', 'unavailable'],
    [500, 'InternalError', 'unavailable'],
    [400, 'InvalidArgument', 'internal'],
  ] as const)('translates %i %s to %s', async (status, Code, kind) => {
    const facade = await facing(json(status, { Code }));
    const error = await facade.inspectBucket('photos', soon()).catch((e: Error) => e);
    expect(error).toMatchObject({ name: 'StorageError', kind, resource: 'bucket photos' });
    expect((error as Error).message).toContain(Code);
    expect(JSON.stringify([error, (error as Error).message, (error as Error).stack])).not.toContain(SECRET);
  });

  it('takes a page of a proxy for the status that it has', async () => {
    const facade = await facing((_, response) => response.writeHead(502).end('<html>Bad gateway</html>'));
    await expect(facade.health(soon())).rejects.toMatchObject({ kind: 'unavailable' });
  });

  it('is a timeout when no answer comes until the signal', async () => {
    const asked = Promise.withResolvers<void>();
    const facade = await facing(() => asked.resolve());
    const abort = new AbortController();
    const call = facade.inspectBucket('photos', abort.signal);
    call.catch(() => {});
    await asked.promise;
    abort.abort();
    await expect(call).rejects.toMatchObject({ kind: 'timeout' });
  });

  it('is a timeout when the answer stops in the middle', async () => {
    const half = Promise.withResolvers<void>();
    const facade = await facing((_, response) => {
      response.writeHead(200, { 'content-length': 1000 });
      response.write('{', () => half.resolve());
    });
    const abort = new AbortController();
    const call = facade.inspectBucket('photos', abort.signal);
    call.catch(() => {});
    await half.promise;
    abort.abort();
    await expect(call).rejects.toMatchObject({ kind: 'timeout' });
  });

  it('does not know what happened when the connection breaks under a change', async () => {
    const facade = await facing(request => request.socket.destroy());
    await expect(facade.inspectBucket('photos', soon())).rejects.toMatchObject({ kind: 'unavailable' });
    await expect(facade.removePrincipal('somebody', soon())).rejects.toMatchObject({ kind: 'timeout' });
  });

  it('is not asked to do anything when the signal had fired before', async () => {
    let asked = 0;
    const facade = await facing(() => {
      asked += 1;
    });
    await expect(facade.createBucket(bucket, spec, unleased(AbortSignal.abort()))).rejects.toMatchObject({
      kind: 'timeout',
    });
    expect(asked).toBe(0);
  });

  it('refuses an answer that has not the shape it must have', async () => {
    const facade = await facing(json(200, { surprise: true }));
    await expect(facade.inspectBucket('photos', soon())).rejects.toMatchObject({ kind: 'internal' });
  });

  it('sends no secret in a URL, a header or in the clear of its own', async () => {
    const seen: string[] = [];
    const facade = await facing((request, response) => {
      seen.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)}`);
      if (request.method === 'GET') json(404, { Code: 'NoSuchUser' })(request, response);
      else response.writeHead(204).end();
    });
    const secretAccessKey = 'secret-of-the-grantee';
    await facade.putPrincipal({ uid: 'u', accessKeyId: 'KEYID', secretAccessKey, displayName: 'd' }, soon());
    expect(seen).toHaveLength(2);
    expect(seen.join()).not.toContain(SECRET);
    expect(seen.join()).not.toContain(secretAccessKey);
  });
});
