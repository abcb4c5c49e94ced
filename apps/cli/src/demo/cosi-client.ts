import { join } from 'node:path';
import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js';
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader';
import { PACKAGE_ROOT } from '#platform/package-root';
import { LauncherError } from '../home.js';

const PACKAGE = 'sigs.k8s.io.cosi.v1alpha2';
const CALL_MS = 60_000;

/** A COSI caller as a sidecar is one: plain gRPC on the UNIX socket, v1alpha2. */
export class DemoCosiClient {
  readonly #client: Client;
  readonly #methods: ServiceDefinition;

  constructor(endpoint: string) {
    const definitions = loadSync(join(PACKAGE_ROOT, 'proto', 'cosi', 'v1alpha2', 'cosi.proto'), {
      keepCase: true,
      enums: String,
    });
    const service = (name: string): ServiceDefinition => definitions[`${PACKAGE}.${name}`] as ServiceDefinition;
    this.#methods = { ...service('Identity'), ...service('Provisioner') };
    this.#client = new Client(endpoint.replace(/^unix:\/\//, 'unix:'), credentials.createInsecure());
  }

  call<Reply>(name: string, request: object): Promise<Reply> {
    const method = this.#methods[name];
    if (method === undefined) throw new Error(`no method ${name}`);
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        { deadline: Date.now() + CALL_MS },
        (error: ServiceError | null, reply?: unknown) => {
          if (error === null) resolve(reply as Reply);
          else reject(new LauncherError(`${name}: ${status[error.code]}: ${error.details}`));
        },
      );
    });
  }

  close(): void {
    this.#client.close();
  }
}
