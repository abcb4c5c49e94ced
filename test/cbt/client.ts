import { Client, type ClientReadableStream, credentials, type ServiceError, status } from '@grpc/grpc-js';
import { type Metadata, message, metadataOf, type Value } from '#test/cbt/wire';

/** Bytes in, bytes out. */
const same = (bytes: Buffer): Buffer => bytes;

export interface Answer {
  code: string;
  details: string;
  messages: Metadata[];
}

export interface CallOptions {
  deadline?: number;
  metadata?: never;
}

/** Else all clients of an address share one. */
const OWN_CONNECTION = { 'grpc.use_local_subchannel_pool': 1 };

/** A caller that knows field numbers and nothing else of the server. */
export class CbtClient {
  private constructor(private readonly client: Client) {}

  /** @param window how many bytes the server may send ahead of what is read; gRPC's own choice when absent */
  static overSocket(path: string, window?: number): CbtClient {
    const options =
      window === undefined ? OWN_CONNECTION : { ...OWN_CONNECTION, 'grpc-node.flow_control_window': window };
    return new CbtClient(new Client(`unix:${path}`, credentials.createInsecure(), options));
  }

  static overTls(port: number, ca: string): CbtClient {
    return new CbtClient(new Client(`localhost:${port}`, credentials.createSsl(Buffer.from(ca)), OWN_CONNECTION));
  }

  stream(
    path: string,
    request: Record<number, Value> | Buffer,
    options: CallOptions = {},
  ): ClientReadableStream<Buffer> {
    const bytes = Buffer.isBuffer(request) ? request : message(request);
    return this.client.makeServerStreamRequest(path, same, same, bytes, options);
  }

  /** Reads all of it. */
  call(path: string, request: Record<number, Value> | Buffer, options: CallOptions = {}): Promise<Answer> {
    return collect(this.stream(path, request, options));
  }

  unary(path: string, request: Record<number, Value> = {}): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.client.makeUnaryRequest(path, same, same, message(request), (error, reply) =>
        error ? reject(error) : resolve(reply as Buffer),
      );
    });
  }

  close(): void {
    this.client.close();
  }
}

export function collect(stream: ClientReadableStream<Buffer>): Promise<Answer> {
  const messages: Metadata[] = [];
  return new Promise(resolve => {
    stream.on('data', (bytes: Buffer) => messages.push(metadataOf(bytes)));
    stream.on('error', () => {}); // its status tells the same
    stream.on('status', ({ code, details }) => resolve({ code: status[code] as string, details, messages }));
  });
}

/** The status alone, without reading a message. */
export const statusOf = (stream: ClientReadableStream<Buffer>): Promise<ServiceError['code']> =>
  new Promise(resolve => {
    stream.on('error', () => {});
    stream.on('status', ({ code }) => resolve(code));
  });

export const rangesOf = ({ messages }: Answer): [bigint, bigint][] => messages.flatMap(({ ranges }) => ranges);
