import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { type AddressInfo, connect as connectSocket, createServer, type Server, type Socket } from 'node:net';
import { type Room, S1, TOKEN, testCertificate } from '#test/cbt/in-process-server';
import { message, metadataOf } from '#test/cbt/wire';

export type Door = 'socket' | 'tls';

/** The same list by both doors. */
const REQUESTS = {
  socket: { path: '/csi.v1.SnapshotMetadata/GetMetadataAllocated', fields: { 1: S1 } },
  tls: { path: '/snapshotmetadata.SnapshotMetadata/GetMetadataAllocated', fields: { 1: TOKEN, 2: 'acme', 3: S1 } },
};

/**
 * A reader of plain HTTP/2 that takes nothing of its stream before it is told to, as grpc-js's client would, while its
 * library still answers pings. Between it and the server is a relay, which can stop: then neither hears of the other.
 */
export class PlainReader {
  readonly trailers: Promise<Record<string, unknown>>;
  readonly closed: Promise<unknown>;

  private constructor(
    private readonly relay: Relay,
    readonly session: ClientHttp2Session,
    readonly request: ClientHttp2Stream,
  ) {
    this.trailers = new Promise(resolve => request.once('trailers', resolve));
    this.closed = new Promise(resolve => request.once('close', resolve));
  }

  /** Its stream has begun. */
  static async open(room: Pick<Room, 'socketPath' | 'tlsPort'>, door: Door): Promise<PlainReader> {
    const secure = door === 'tls';
    const relay = await Relay.start(secure ? { port: room.tlsPort, host: '127.0.0.1' } : { path: room.socketPath });
    const ca = (await testCertificate()).cert;
    const session = connect(`${secure ? 'https' : 'http'}://localhost:${relay.port}`, secure ? { ca } : {});
    session.on('error', () => {});
    const { path, fields } = REQUESTS[door];
    const request = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    request.on('error', () => {});
    const body = message(fields);
    request.end(Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), body]));
    const reader = new PlainReader(relay, session, request);
    await once(request, 'response');
    return reader;
  }

  /** Nothing passes, in either direction or in one. */
  freeze(direction: Direction = 'both'): void {
    this.relay.stop(direction);
  }

  /** What was held up comes. */
  thaw(): void {
    this.relay.goOn();
  }

  /** Takes all that comes, up to the status: its code, its text, and where the last range ends. */
  async takeAll(): Promise<{ code: unknown; details: string; end: bigint }> {
    const messages: Buffer[] = [];
    this.request.on('data', (bytes: Buffer) => messages.push(bytes));
    const { 'grpc-status': code, 'grpc-message': details } = await this.trailers;
    return { code, details: decodeURIComponent(String(details)), end: lastEnd(Buffer.concat(messages)) };
  }

  close(): void {
    this.session.destroy();
    this.relay.close();
  }
}

/** Where the last range of a stream's bytes ends. */
function lastEnd(bytes: Buffer): bigint {
  let end = 0n;
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at + 1);
    const { ranges } = metadataOf(bytes.subarray(at + 5, at + 5 + length));
    const [offset, size] = ranges.at(-1)!;
    end = offset + size;
    at += 5 + length;
  }
  return end;
}

type Direction = 'both' | 'from the server';

/** Carries bytes between connections to it and as many to the server, until it is stopped. */
class Relay {
  private readonly near = new Set<Socket>();
  private readonly far = new Set<Socket>();

  private constructor(private readonly server: Server) {}

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  static async start(target: { path: string } | { port: number; host: string }): Promise<Relay> {
    const server = createServer();
    const relay = new Relay(server);
    server.on('connection', near => {
      const far = connectSocket(target);
      relay.near.add(near);
      relay.far.add(far);
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        from.on('error', () => {});
        from.on('data', bytes => to.write(bytes));
        from.on('close', () => to.destroy());
      }
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    return relay;
  }

  stop(direction: Direction): void {
    for (const socket of this.far) socket.pause();
    if (direction === 'both') for (const socket of this.near) socket.pause();
  }

  goOn(): void {
    for (const socket of [...this.near, ...this.far]) socket.resume();
  }

  close(): void {
    this.server.close();
    for (const socket of [...this.near, ...this.far]) socket.destroy();
  }
}
