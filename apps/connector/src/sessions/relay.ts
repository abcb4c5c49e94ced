import {
  type Client,
  type MethodDefinition,
  type ServerWritableStream,
  type StatusObject,
  status,
} from '@grpc/grpc-js';

const asItIs = (bytes: Buffer): Buffer => bytes;

/**
 * Asks Trivet's own service, and passes on what comes back byte by byte, no faster than it is read. Its status comes after all its messages, so
 * a slow reader's is not lost.
 */
export function relay<Request>(
  upstream: Client,
  { path, requestSerialize }: Pick<MethodDefinition<Request, object>, 'path' | 'requestSerialize'>,
  request: Request,
  call: ServerWritableStream<unknown, Buffer>,
): void {
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
}
