import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer, json } from 'node:stream/consumers';
import * as grpc from '@grpc/grpc-js';
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader';
import { PACKAGE_ROOT } from '#platform/package-root';
import { makeSelfSigned } from '../../apps/gateway/src/self-signed.js';

const GRAIN = 4_096;
const PAGE = 3;

interface Query {
  security_token: string;
  namespace: string;
  snapshot_name?: string;
  target_snapshot_name?: string;
  base_snapshot_id?: string;
  starting_offset: string;
}

/** Every stream breaks off in this way after so many pages, until none of the list is left. */
export type Break = { after: number; code: grpc.status };

/**
 * A gateway whose answers about changed blocks come from the images themselves, byte by byte, and break off on order:
 * what the tools must get right whatever the appliance does. CSP goes through to the real one.
 */
export class MetadataDouble {
  readonly breaks: Break[] = [];
  /** Reports nothing of what changed from here on: an appliance that lies. */
  blindFrom = Number.POSITIVE_INFINITY;
  /** Says that every snapshot has so many bytes more than it has. */
  surplus = 0;
  /** As if every base were gone with its steps. */
  deltasAreLost = false;
  /** As if every volume were too fragmented to be cut without being asked for it. */
  isFragmented = false;
  /** As if the gateway were started again; how many calls found nobody. */
  isDown = false;
  refused = 0;
  /** Calls that are refused, `METHOD url`, as if nothing were exported, say. */
  refuses: RegExp | undefined;
  /** Streams opened, with their offsets. */
  readonly opened: { base?: string; from: number }[] = [];
  private readonly sessions = new Map<string, { snapshots: string[] }>();
  private made = 0;

  private constructor(
    private readonly gatewayUrl: string,
    private readonly poolPath: string,
    private readonly http: Server,
    private readonly server: grpc.Server,
    private readonly caCert: string,
  ) {}

  static async start(gatewayUrl: string, poolPath: string): Promise<MetadataDouble> {
    const pem = await makeSelfSigned([]);
    const at = pem.indexOf('-----BEGIN PRIVATE KEY-----');
    const [cert, key] = [pem.slice(0, at), pem.slice(at)];
    const server = new grpc.Server();
    const http = createServer();
    const double = new MetadataDouble(gatewayUrl, poolPath, http, server, cert);
    const file = join(PACKAGE_ROOT, 'proto', 'snapshotmetadata', 'snapshot-metadata.proto');
    const service = loadSync(file, { keepCase: true, longs: String, defaults: true })[
      'snapshotmetadata.SnapshotMetadata'
    ] as ServiceDefinition;
    const handle = (call: grpc.ServerWritableStream<Query, object>) => double.stream(call);
    server.addService(service, { GetMetadataAllocated: handle, GetMetadataDelta: handle });
    const credentials = grpc.ServerCredentials.createSsl(null, [
      { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) },
    ]);
    double.port = await new Promise<number>((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', credentials, (error, port) => (error ? reject(error) : resolve(port))),
    );
    http.on('request', (incoming, reply) => void double.answer(incoming, reply));
    await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve));
    return double;
  }
  private port = 0;

  get url(): string {
    return `http://127.0.0.1:${(this.http.address() as AddressInfo).port}`;
  }

  get openSessions(): number {
    return this.sessions.size;
  }

  async close(): Promise<void> {
    this.server.forceShutdown();
    this.http.closeAllConnections();
    await new Promise(resolve => this.http.close(resolve));
  }

  private async answer(incoming: IncomingMessage, reply: ServerResponse): Promise<void> {
    const { method, url = '', headers } = incoming;
    const held = this.heldCall?.calls.test(`${method} ${url}`) ? this.heldCall : undefined;
    if (held) this.heldCall = undefined;
    await held?.wait();
    if (this.isDown) {
      this.refused++;
      incoming.socket.destroy();
      return;
    }
    if (!url.startsWith('/cbt/')) {
      const body = await buffer(incoming);
      if (this.isFragmented && method === 'POST' && url.endsWith('/snapshots') && !body.includes('"force":true')) {
        const errors = [{ code: 'Conflict', message: 'its 300000 extents would stall its writers for about 5800 ms' }];
        reply.writeHead(409, { 'content-type': 'application/json' }).end(JSON.stringify({ errors }));
        return;
      }
      if (this.refuses?.test(`${method} ${url}`)) {
        const errors = [{ code: 'Conflict', message: 'refused by the test' }];
        reply.writeHead(409, { 'content-type': 'application/json' }).end(JSON.stringify({ errors }));
        return;
      }
      const through = request(`${this.gatewayUrl}${url}`, { method, headers }, answer => {
        reply.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(reply);
      });
      through.end(body);
      return;
    }
    if (method === 'DELETE') {
      this.sessions.delete(url.split('/').at(-1)!);
      reply.writeHead(204).end();
      return;
    }
    const { snapshots } = (await json(incoming)) as { snapshots: string[] };
    const missing = snapshots.find(id => !this.known.has(id) && !existsSync(this.image(id)));
    const name = `session-${++this.made}`;
    if (missing === undefined) this.sessions.set(name, { snapshots });
    for (const id of snapshots) this.known.add(id);
    const outcome =
      missing === undefined
        ? {
            sessionState: 'Ready',
            sessionToken: name,
            sessionURL: `127.0.0.1:${this.port}`,
            caCert: Buffer.from(this.caCert).toString('base64'),
          }
        : { sessionState: 'Failed', error: `snapshot ${missing} does not exist` };
    reply.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ name, ...outcome }));
  }
  /** As an index has them: also after their deletion. */
  private readonly known = new Set<string>();

  /** Ends every session: tokens are worth nothing from now on. */
  expire(): void {
    this.sessions.clear();
  }

  private image(id: string): string {
    return join(this.poolPath, 'snapshots', id);
  }

  private held: (() => void) | undefined;
  private heldStream: grpc.ServerWritableStream<Query, object> | undefined;

  /** The stream that is held breaks off, as all do when a gateway ends. */
  dropStreams(): void {
    this.heldStream?.emit('error', { code: grpc.status.UNAVAILABLE, details: 'the test ends it' });
  }

  /** The next stream gets no answer; resolves when it has come. */
  hold(): Promise<void> {
    return new Promise(resolve => {
      this.held = resolve;
    });
  }

  /** The next call like that goes on when `go` is called; `come` resolves when it has come. */
  holdCall(calls: RegExp): { come: Promise<void>; go(): void } {
    const come = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<void>();
    const wait = () => {
      come.resolve();
      return gone.promise;
    };
    this.heldCall = { calls, wait };
    return { come: come.promise, go: gone.resolve };
  }
  private heldCall: { calls: RegExp; wait(): Promise<void> } | undefined;

  private stream(call: grpc.ServerWritableStream<Query, object>): void {
    const held = this.held;
    this.held = undefined;
    if (held) {
      this.heldStream = call;
      held();
      return;
    }
    const failure = this.send(call);
    if (failure) call.emit('error', failure);
    else call.end();
  }

  /** What the stream ends with, unless it is complete. */
  private send(call: grpc.ServerWritableStream<Query, object>): Partial<grpc.StatusObject> | undefined {
    const { request: query } = call;
    const target = query.target_snapshot_name || query.snapshot_name!;
    const base = query.base_snapshot_id || undefined;
    const session = this.sessions.get(query.security_token);
    const from = Number(query.starting_offset);
    this.opened.push({ base, from });
    if (!session || query.namespace !== 'default')
      return { code: grpc.status.UNAUTHENTICATED, details: 'no such session' };
    if (base !== undefined && this.deltasAreLost)
      return { code: grpc.status.FAILED_PRECONDITION, details: 'the difference is not known any more' };
    const { capacity, ranges } = this.compare(target, base);
    const wanted = ranges.filter(({ offset, length }) => offset + length > from && offset < this.blindFrom);
    const stop = this.breaks.shift();
    for (let page = 0; page === 0 || page * PAGE < wanted.length; page++) {
      if (stop?.after === page) return { code: stop.code, details: 'broken off by the test' };
      call.write({
        block_metadata_type: 2,
        volume_capacity_bytes: String(capacity + this.surplus),
        block_metadata: wanted
          .slice(page * PAGE, (page + 1) * PAGE)
          .map(({ offset, length }) => ({ byte_offset: String(offset), size_bytes: String(length) })),
      });
    }
    if (stop) return { code: stop.code, details: 'broken off by the test' };
    return undefined;
  }

  private compare(target: string, base: string | undefined) {
    const [a, b] = [
      openSync(this.image(target), 'r'),
      base === undefined ? undefined : openSync(this.image(base), 'r'),
    ];
    const [left, right] = [Buffer.alloc(GRAIN), Buffer.alloc(GRAIN)];
    const ranges: { offset: number; length: number }[] = [];
    const capacity = fstatSync(a).size;
    for (let offset = 0; offset < capacity; offset += GRAIN) {
      left.fill(0);
      right.fill(0);
      readSync(a, left, 0, GRAIN, offset);
      if (b !== undefined) readSync(b, right, 0, GRAIN, offset);
      if (left.equals(right)) continue;
      const last = ranges.at(-1);
      const length = Math.min(GRAIN, capacity - offset);
      if (last && last.offset + last.length === offset) last.length += length;
      else ranges.push({ offset, length });
    }
    closeSync(a);
    if (b !== undefined) closeSync(b);
    return { capacity, ranges };
  }
}
