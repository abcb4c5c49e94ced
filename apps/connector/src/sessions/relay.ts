import {
  type Client,
  type ClientReadableStream,
  type MethodDefinition,
  type ServerWritableStream,
  type StatusObject,
  status,
} from '@grpc/grpc-js';
import { Refused } from './refused.js';

/** As many as a gateway takes of one connection: more would wait in the library, unseen, until one ends. */
const MAX_STREAMS = 128;

const asItIs = (bytes: Buffer): Buffer => bytes;

/** Trivet's own service, at the other end of the socket. */
export class Upstream {
  private open = 0;

  constructor(private readonly client: Client) {}

  /** Throws Refused when it has as many streams as it takes. */
  relay<Request>(
    method: Pick<MethodDefinition<Request, object>, 'path' | 'requestSerialize'>,
    request: Request,
    call: ServerWritableStream<unknown, Buffer>,
  ): void {
    if (this.open >= MAX_STREAMS)
      throw new Refused(status.RESOURCE_EXHAUSTED, 'too many readers have a stream open; try again');
    this.open++;
    relay(this.client, method, request, call).once('status', () => this.open--);
  }

  close(): void {
    this.client.close();
  }
}

/**
 * Asks the service, and passes on what comes back byte by byte, no faster than it is read. Its status comes after all its messages, so
 * a slow reader's is not lost.
 */
function relay<Request>(
  upstream: Client,
  { path, requestSerialize }: Pick<MethodDefinition<Request, object>, 'path' | 'requestSerialize'>,
  request: Request,
  call: ServerWritableStream<unknown, Buffer>,
): ClientReadableStream<Buffer> {
  const stream = upstream.makeServerStreamRequest<Request, Buffer>(path, requestSerialize, asItIs, request, {
    deadline: call.getDeadline(),
  });
  let ended: StatusObject | undefined;
  stream.on('status', (given: StatusObject) => {
    ended = given;
  });
  stream.on('error', () => {}); // its status says the same
  stream.on('data', (message: Buffer) => {
    if (call.write(message)) return;
    stream.pause();
    call.once('drain', () => stream.resume());
  });
  stream.on('end', () => {
    if (call.cancelled) return;
    if (ended?.code === status.OK) call.end();
    else
      call.emit('error', {
        code: ended?.code ?? status.UNAVAILABLE,
        details: ended?.details ?? 'the stream has ended',
      });
  });
  call.once('cancelled', () => {
    stream.cancel();
    stream.resume();
  });
  return stream;
}
