import { mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Client,
  credentials,
  Metadata,
  type MethodDefinition,
  type ServerDuplexStream,
  type ServiceDefinition,
  status,
} from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bindSocket } from '#platform/connections/unix-socket';
import { createLogger } from '#platform/logging/log';
import { GATEWAY_NAME } from '#protocol/enrolment';
import { GrpcEndpoint } from '#protocol/grpc-endpoint';
import { listenTls, type TlsListener } from '#protocol/tls-listener';
import { makeAuthority, makeServerPair, openAuthority, signClient } from '#tenancy/clusters/certificates';
import { newKey } from '#test/clusters/cluster-client';
import { Gateways } from '../../apps/connector/src/gateways.js';
import { Sockets } from '../../apps/connector/src/sockets.js';

const MIB = 1024 * 1024;
const same = (bytes: Buffer): Buffer => bytes;
const ECHO: MethodDefinition<Buffer, Buffer> = {
  path: '/test.Echo/Bidi',
  requestStream: true,
  responseStream: true,
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
};
const UNLIMITED = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };

/** Stock gRPC on both sides: what a service sees of its caller through a connector is what it sees at its own socket. */
let folder: string;
let endpoint: GrpcEndpoint;
let door: TlsListener;
let gateways: Gateways;
let sockets: Sockets | undefined;
/** What the service saw last, and calls whose callers left. */
let seen: { metadata: Record<string, unknown>; deadline: number; cancelled: number };
const clients: Client[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trivet-calls-'));
  seen = { metadata: {}, deadline: 0, cancelled: 0 };
  const opened = await GrpcEndpoint.open(
    [[{ Bidi: ECHO } as unknown as ServiceDefinition, { Bidi: echo }]],
    { health: new HealthImplementation(), options: UNLIMITED },
    take => bindSocket({ path: join(folder, 'direct.sock') }, take),
  );
  ({ endpoint } = opened);
  const authority = await openAuthority(await makeAuthority());
  const pair = await makeServerPair(authority, GATEWAY_NAME);
  door = await listenTls(
    { ...pair, ca: authority.certificate.toString('pem'), requestCert: true },
    { host: '127.0.0.1', port: 0 },
    connection => endpoint.take(connection as Socket),
  );
  const { key, request } = await newKey();
  const { certificate } = await signClient(authority, request, { organization: 't', commonName: 'c' });
  const identity = { key, certificate, authority: authority.certificate.toString('pem') };
  gateways = new Gateways([{ host: '127.0.0.1', port: door.port }], () => identity, createLogger('test'));
  sockets = new Sockets('019a0000-0000-7000-8000-000000000001', gateways, createLogger('test'));
  await sockets.serve('echo', join(folder, 'through.sock'), undefined);
});
afterAll(async () => {
  for (const client of clients) client.close();
  await sockets?.close(0);
  gateways?.stop();
  door?.release();
  endpoint?.release();
  await endpoint?.close(1_000);
  rmSync(folder, { recursive: true });
});

function echo(call: ServerDuplexStream<Buffer, Buffer>): void {
  seen.metadata = call.metadata.getMap();
  seen.deadline = Number(call.getDeadline());
  call.on('cancelled', () => seen.cancelled++);
  const answer = new Metadata();
  answer.set('x-answer', 'first');
  answer.set('answer-bin', Buffer.from([0, 255, 10]));
  call.sendMetadata(answer);
  call.on('data', (message: Buffer) => {
    if (message.toString() === 'fail') {
      const trailers = new Metadata();
      trailers.set('why-bin', Buffer.from([7, 0, 7]));
      call.emit('error', { code: status.FAILED_PRECONDITION, details: 'as asked: ünïcode %', metadata: trailers });
    } else call.write(message);
  });
  call.on('end', () => call.end());
}

const clientOf = (name: string): Client => {
  const options = { ...UNLIMITED, 'grpc.use_local_subchannel_pool': 1 };
  const client = new Client(`unix:${join(folder, `${name}.sock`)}`, credentials.createInsecure(), options);
  clients.push(client);
  return client;
};

function call(client: Client, messages: readonly Buffer[], metadata = new Metadata(), deadline = Date.now() + 20_000) {
  const stream = client.makeBidiStreamRequest(ECHO.path, same, same, metadata, { deadline });
  const got: Buffer[] = [];
  let headers: Record<string, unknown> = {};
  stream.on('metadata', (received: Metadata) => {
    headers = received.getMap();
  });
  stream.on('data', (message: Buffer) => got.push(message));
  stream.on('error', () => {});
  for (const message of messages) stream.write(message);
  const done = new Promise<{ code: status; details: string; trailers: Record<string, unknown> }>(resolve =>
    stream.on('status', ({ code, details, metadata: trailers }) =>
      resolve({ code, details, trailers: trailers.getMap() }),
    ),
  );
  return { stream, got, done, headers: () => headers };
}

describe.each(['direct', 'through'])('a call, %s', name => {
  it('has its metadata, deadline and messages of any size', async () => {
    const metadata = new Metadata();
    metadata.set('x-caller', 'sidecar');
    metadata.set('token-bin', Buffer.from(Array.from({ length: 256 }, (_, n) => n)));
    metadata.set('x-long', 'y'.repeat(4_000));
    const deadline = Date.now() + 30_000;
    const messages = [Buffer.from('a'), Buffer.alloc(0), Buffer.alloc(20 * MIB, 'big'), Buffer.alloc(100_000, 1)];
    const { stream, got, done, headers } = call(clientOf(name), messages, metadata, deadline);
    stream.end();
    expect((await done).code).toBe(status.OK);
    expect(got.map(({ length }) => length)).toEqual(messages.map(({ length }) => length));
    expect(Buffer.concat(got).equals(Buffer.concat(messages))).toBe(true);
    expect(seen.metadata).toMatchObject({
      'x-caller': 'sidecar',
      'x-long': 'y'.repeat(4_000),
      'token-bin': Buffer.from(Array.from({ length: 256 }, (_, n) => n)),
    });
    expect(Math.abs(seen.deadline - deadline)).toBeLessThan(1_000);
    expect(headers()).toMatchObject({ 'x-answer': 'first', 'answer-bin': Buffer.from([0, 255, 10]) });
  });

  it('ends with the status, details and trailers of the service', async () => {
    const { done } = call(clientOf(name), [Buffer.from('fail')]);
    expect(await done).toMatchObject({
      code: status.FAILED_PRECONDITION,
      details: 'as asked: ünïcode %',
      trailers: { 'why-bin': Buffer.from([7, 0, 7]) },
    });
  });

  it('is over for the service when its caller cancels it, or has waited until its deadline', async () => {
    const client = clientOf(name);
    const before = seen.cancelled;
    const cancelled = call(client, [Buffer.from('a')]);
    await new Promise(resolve => cancelled.stream.once('data', resolve));
    cancelled.stream.cancel();
    expect((await cancelled.done).code).toBe(status.CANCELLED);
    await expect.poll(() => seen.cancelled).toBe(before + 1);
    const late = call(client, [Buffer.from('a')], undefined, Date.now() + 500);
    expect((await late.done).code).toBe(status.DEADLINE_EXCEEDED);
    await expect.poll(() => seen.cancelled).toBe(before + 2);
    // Of one connection, which goes on.
    const { stream, done } = call(client, [Buffer.from('b')]);
    stream.end();
    expect((await done).code).toBe(status.OK);
  });
});
