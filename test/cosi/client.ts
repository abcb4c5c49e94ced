import { join } from 'node:path';
import { Client, credentials, type Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { loadSync, type MethodDefinition, type ServiceDefinition } from '@grpc/proto-loader';
import { PACKAGE_ROOT } from '#platform/package-root';

/** A caller's own reading of the protocol; the R numbers are the wire revisions of v1alpha2. */
export type Dialect = 'v1alpha1' | 'r1' | 'r2' | 'r3' | 'r4';
export const V1ALPHA2_DIALECTS = ['r1', 'r2', 'r3', 'r4'] as const;
export const ALL_DIALECTS = ['v1alpha1', ...V1ALPHA2_DIALECTS] as const;

// biome-ignore lint/suspicious/noExplicitAny: replies of five dialects, checked field by field
export type Reply = any;

export interface Outcome {
  code: keyof typeof status;
  message: string;
  reply: Reply;
  trailers: Metadata | undefined;
}

type Method = MethodDefinition<object, object>;

const methods = new Map<Dialect, Map<string, Method>>(
  ALL_DIALECTS.map(dialect => {
    const definitions = loadSync(join(PACKAGE_ROOT, 'test', 'cosi', 'protos', `${dialect}.proto`), {
      keepCase: true,
      enums: String,
      // Absent messages stay away: sidecars tell them from empty ones.
      defaults: false,
      arrays: true,
      objects: true,
    });
    const pkg = dialect === 'v1alpha1' ? 'cosi.v1alpha1' : 'sigs.k8s.io.cosi.v1alpha2';
    const services = ['Identity', 'Provisioner'].map(name => definitions[`${pkg}.${name}`] as ServiceDefinition);
    return [dialect, new Map(services.flatMap(service => Object.entries(service)) as [string, Method][])];
  }),
);

/** A plain grpc-js client on a UNIX socket. Field names are those of the dialect's proto text. */
export class CosiClient {
  private readonly client: Client;

  constructor(socketPath: string) {
    this.client = new Client(`unix:${socketPath}`, credentials.createInsecure(), {
      'grpc.max_send_message_length': -1,
      // Each client has a connection of its own.
      'grpc.use_local_subchannel_pool': 1,
    });
  }

  /** Never rejects: the code is what tests look at. */
  call(dialect: Dialect, name: string, request: object, deadlineMs = 30_000, metadata?: Metadata): Promise<Outcome> {
    const method = methods.get(dialect)?.get(name);
    if (!method) throw new Error(`${dialect} has no method ${name}`);
    return this.send(method.path, method.requestSerialize, method.responseDeserialize, request, deadlineMs, metadata);
  }

  /** Bytes in, bytes out. */
  raw(path: string, request: Buffer, deadlineMs = 30_000): Promise<Outcome> {
    const asIs = (bytes: Buffer): Buffer => bytes;
    return this.send(path, asIs, asIs, request, deadlineMs);
  }

  close(): void {
    this.client.close();
  }

  private send<Q, A>(
    path: string,
    serialize: (request: Q) => Buffer,
    deserialize: (bytes: Buffer) => A,
    request: Q,
    deadlineMs: number,
    metadata?: Metadata,
  ): Promise<Outcome> {
    return new Promise(resolve => {
      let answer: A | undefined;
      let failure: ServiceError | null = null;
      const options = { deadline: Date.now() + deadlineMs };
      const done = (error: ServiceError | null, reply?: A): void => {
        failure = error;
        answer = reply;
      };
      const call = metadata
        ? this.client.makeUnaryRequest(path, serialize, deserialize, request, metadata, options, done)
        : this.client.makeUnaryRequest(path, serialize, deserialize, request, options, done);
      // grpc-js calls back first and reports the status then.
      call.on('status', ({ code, details, metadata: trailers }) => {
        const ended = failure?.code ?? code;
        resolve({
          code: status[ended] as Outcome['code'],
          message: failure?.details ?? details,
          reply: answer,
          trailers,
        });
      });
    });
  }
}
