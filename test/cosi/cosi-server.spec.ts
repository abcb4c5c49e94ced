import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Client, credentials, Metadata, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ERROR_KINDS, StorageError } from '#platform/errors';
import { registry } from '#platform/metrics/metrics';
import { GRPC_CODES } from '#protocol/grpc-status';
import type { EndpointCaller } from '#storage/object/endpoint';
import { CosiClient } from '#test/cosi/client';
import { openRoom, type Room, testEndpoint, WAIT_MS } from '#test/cosi/in-process-target';
import { at, bytes } from '#test/cosi/wire';

/** Of what is behind us: somebody should look. */
const PASSING = new Set(['unavailable', 'timeout', 'unauthenticated', 'permission_denied']);
const BUCKET = { name: 'photos' };
const CREATE = 'DriverCreateBucket';

/** Holds a method of the domain until it is let go. */
function hold(room: Room): { entered: Promise<EndpointCaller>; letGo: () => void } {
  const { promise: entered, resolve: enter } = Promise.withResolvers<EndpointCaller>();
  const { promise: free, resolve: letGo } = Promise.withResolvers<void>();
  room.storage.before = (_, caller) => {
    enter(caller);
    return free;
  };
  return { entered, letGo };
}

describe('CosiServer', () => {
  let room: Room;
  let client: CosiClient;
  beforeEach(async () => {
    room = await openRoom({}, 2_000);
    client = new CosiClient(room.socketPath);
  });
  afterEach(async () => {
    client.close();
    await room.close();
  });

  describe('the caller', () => {
    const callerOf = async (call: Promise<unknown>, seen: Promise<EndpointCaller>): Promise<EndpointCaller> => {
      const caller = await seen;
      await call;
      return caller;
    };

    it('has the deadline that came with the call, or that of every call', async () => {
      const first = hold(room);
      first.letGo();
      const before = Date.now();
      const { deadline } = await callerOf(client.call('r1', CREATE, BUCKET, 600_000), first.entered);
      expect(deadline).toBeGreaterThan(before + 500_000);
      expect(deadline).toBeLessThan(before + 660_000);

      const second = hold(room);
      second.letGo();
      const patient = await callerOf(client.call('r1', CREATE, BUCKET, Number.POSITIVE_INFINITY), second.entered);
      expect(patient.deadline).toBeGreaterThanOrEqual(before + WAIT_MS);
      expect(patient.deadline).toBeLessThanOrEqual(Date.now() + WAIT_MS);
      expect(patient.signal?.aborted).toBe(false);
    });

    it('is seen leaving while its work goes on', async () => {
      const { entered, letGo } = hold(room);
      const outcome = client.call('r1', CREATE, BUCKET, 2_000);
      const { signal } = await entered;
      expect(signal?.aborted).toBe(false);
      expect(await outcome).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
      await vi.waitFor(() => expect(signal?.aborted).toBe(true));
      letGo();
      await vi.waitFor(() => expect(room.storage.buckets.has(BUCKET.name)).toBe(true));
      await vi.waitFor(() => expect(room.log.lines).toMatchObject([{ fields: { code: 'CANCELLED' } }]));
    });

    it.each([
      ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', true],
      ['00-nonsense', false],
    ])('brings its trace: %s', async (traceparent, passes) => {
      const held = hold(room);
      held.letGo();
      const metadata = new Metadata();
      metadata.set('traceparent', traceparent);
      const caller = await callerOf(client.call('r1', CREATE, BUCKET, 5_000, metadata), held.entered);
      expect(caller.traceparent).toBe(passes ? traceparent : undefined);
    });
  });

  describe('errors', () => {
    it.each(ERROR_KINDS)('%s has its code, in both packages', async kind => {
      room.storage.before = () => {
        throw new StorageError(kind, 'bucket photos is in the way');
      };
      for (const dialect of ['v1alpha1', 'r1'] as const) {
        const outcome = await client.call(dialect, CREATE, BUCKET);
        expect(outcome.code).toBe(status[GRPC_CODES[kind]]);
        expect(outcome.message).toContain('bucket photos is in the way');
        expect(outcome.trailers?.get('grpc-status-details-bin')).toEqual([]);
      }
      const level = kind === 'internal' ? 'error' : PASSING.has(kind) ? 'warn' : 'info';
      expect(room.log.lines.map(line => line.level)).toEqual([level, level]);
    });

    it('an unmapped one is INTERNAL with an id that the log explains', async () => {
      room.storage.before = () => {
        throw new TypeError('cannot read key hunter2');
      };
      const { code, message } = await client.call('r1', CREATE, BUCKET);
      expect(code).toBe('INTERNAL');
      expect(message).not.toContain('hunter2');
      const [line] = room.log.lines;
      expect(line).toMatchObject({ level: 'error', fields: { code: 'INTERNAL', err: expect.any(TypeError) } });
      expect(message).toContain(line?.fields.errorId);
    });

    it('a message that cannot be a header in full is cut, not lost', async () => {
      room.storage.before = () => {
        throw new StorageError('not_found', `${'ü'.repeat(1022)}\u{1f512}${'x'.repeat(100_000)}`);
      };
      const { code, message } = await client.call('r1', CREATE, BUCKET);
      expect(code).toBe('NOT_FOUND');
      expect(message).toHaveLength(1024);
    });
  });

  describe('logs and metrics', () => {
    it('leave one line and one measurement for a call', async () => {
      const count = async (): Promise<number> => {
        const text = await registry.getSingleMetricAsString('trivet_cosi_call_duration_seconds');
        const match = /_count\{method="v1alpha2.DriverCreateBucket",code="OK"\} (\d+)/.exec(text);
        return Number(match?.[1] ?? 0);
      };
      const before = await count();
      room.storage.operation = { id: 'operation-1', outcome: { state: 'succeeded', result: null } };
      await client.call('r1', CREATE, BUCKET);
      expect(room.log.lines).toMatchObject([
        {
          level: 'info',
          fields: {
            method: 'v1alpha2.DriverCreateBucket',
            endpoint: 'endpoint-1',
            tenantId: 'tenant-1',
            resource: 'photos',
            code: 'OK',
            durationMs: expect.any(Number),
            operationId: 'operation-1',
          },
        },
      ]);
      expect(await count()).toBe(before + 1);
    });

    it('hold no secret of a grant', async () => {
      await client.call('r1', CREATE, BUCKET);
      const grant = { bucket_id: 'photos', name: 'ba-1', authentication_type: 'Key' };
      const { reply } = await client.call('v1alpha1', 'DriverGrantBucketAccess', grant);
      const { accessSecretKey, accessKeyID } = reply.credentials.s3.secrets;
      expect(accessSecretKey).toMatch(/.{20}/);
      const log = JSON.stringify(room.log.lines);
      expect(log).toContain('ba-1');
      expect(log).not.toContain(accessSecretKey);
      expect(log).not.toContain(accessKeyID);
    });
  });

  describe('endpoints', () => {
    it('open and close while others serve, and each call carries its own', async () => {
      const path = join(room.folder, 'second.sock');
      const second = { ...testEndpoint(), id: 'endpoint-2', tenantId: 'tenant-2', driverName: 'second.test.example' };
      await room.server.open(second, { path });
      const other = new CosiClient(path);
      const held = hold(room);
      held.letGo();
      expect((await other.call('r1', 'DriverGetInfo', {})).reply.name).toBe('second.test.example');
      expect((await client.call('r1', 'DriverGetInfo', {})).reply.name).toBe('cosi.test.example');
      await other.call('r1', CREATE, BUCKET);
      expect((await held.entered).endpoint).toMatchObject({ id: 'endpoint-2', tenantId: 'tenant-2' });

      await room.server.closeEndpoint('endpoint-2');
      expect(existsSync(path)).toBe(false);
      expect(await other.call('r1', 'DriverGetInfo', {})).toMatchObject({ code: 'UNAVAILABLE' });
      expect(await client.call('r1', 'DriverGetInfo', {})).toMatchObject({ code: 'OK' });
      other.close();

      await room.server.open(second, { path });
      const again = new CosiClient(path);
      expect(await again.call('r1', 'DriverGetInfo', {})).toMatchObject({ code: 'OK' });
      again.close();
    });

    it('cannot be opened twice', async () => {
      await expect(room.server.open(testEndpoint(), { path: join(room.folder, 'b.sock') })).rejects.toThrow(
        'open already',
      );
      await expect(
        room.server.open({ ...testEndpoint(), id: 'endpoint-2' }, { path: room.socketPath }),
      ).rejects.toThrow('another process serves');
      expect(await client.call('r1', 'DriverGetInfo', {})).toMatchObject({ code: 'OK' });
    });

    it('let a running call end when they close, and take no new one', async () => {
      const { entered, letGo } = hold(room);
      const running = client.call('r1', CREATE, BUCKET);
      await entered;
      const closed = room.app.close();
      await vi.waitFor(() => expect(existsSync(room.socketPath)).toBe(false));
      const late = new CosiClient(room.socketPath);
      expect(await late.call('r1', 'DriverGetInfo', {})).toMatchObject({ code: 'UNAVAILABLE' });
      late.close();
      letGo();
      expect(await running).toMatchObject({ code: 'OK' });
      await closed;
    });

    it('cut a call that outlives the grace', async () => {
      const { entered, letGo } = hold(room);
      const running = client.call('r1', CREATE, BUCKET);
      await entered;
      const started = performance.now();
      await room.app.close();
      expect(performance.now() - started).toBeGreaterThan(1_900);
      expect(['UNAVAILABLE', 'CANCELLED']).toContain((await running).code);
      letGo();
    });
  });

  describe('grpc.health.v1', () => {
    const SERVING = 1;
    const NOT_SERVING = 2;
    const check = (service: string) => client.raw('/grpc.health.v1.Health/Check', bytes(1, service));

    it('follows readiness, for the server and each service', async () => {
      for (const service of ['', 'cosi.v1alpha1.Provisioner', 'sigs.k8s.io.cosi.v1alpha2.Identity']) {
        room.server.setReady(false);
        expect(at((await check(service)).reply, 1)).toBe(NOT_SERVING);
        room.server.setReady(true);
        expect(at((await check(service)).reply, 1)).toBe(SERVING);
      }
      expect(await check('nobody')).toMatchObject({ code: 'NOT_FOUND' });
    });

    it('tells a watcher of the end, and is not held up by it', async () => {
      const patient = await openRoom({}, 60_000);
      const watcher = new Client(`unix:${patient.socketPath}`, credentials.createInsecure());
      const asIs = (message: Buffer): Buffer => message;
      const seen: number[] = [];
      const stream = watcher.makeServerStreamRequest('/grpc.health.v1.Health/Watch', asIs, asIs, Buffer.alloc(0));
      stream.on('error', () => {});
      stream.on('data', (message: Buffer) => seen.push(at(message, 1) as number));
      await vi.waitFor(() => expect(seen).toEqual([NOT_SERVING]));
      patient.server.setReady(true);
      await vi.waitFor(() => expect(seen).toEqual([NOT_SERVING, SERVING]));
      const started = performance.now();
      await patient.close();
      expect(performance.now() - started).toBeLessThan(30_000);
      expect(seen).toEqual([NOT_SERVING, SERVING, NOT_SERVING]);
      watcher.close();
    });
  });

  it('answers a second connection while the first is busy', async () => {
    const { entered, letGo } = hold(room);
    const running = client.call('r1', CREATE, BUCKET);
    await entered;
    const other = new CosiClient(room.socketPath);
    expect(await other.call('v1alpha1', 'DriverGetInfo', {})).toMatchObject({ code: 'OK' });
    other.close();
    letGo();
    expect(await running).toMatchObject({ code: 'OK' });
  });
});
