import { join } from 'node:path';
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { PACKAGE_ROOT } from '#platform/package-root';

/** Stands in for a request whose bytes are no message of its type. */
export class MalformedRequest {
  constructor(readonly reason: string) {}
}

/** 64-bit numbers as decimal text: doubles would make 2^53 + 1 of another one. Each file has a root of its own. */
const load = (file: string) =>
  loadSync(join(PACKAGE_ROOT, 'proto', file), { defaults: true, longs: String, keepCase: true });

const draft = load('draft/snapshot-metadata.proto');
const csi = load('csi/v1/snapshot-metadata.proto');
const sidecar = load('snapshotmetadata/snapshot-metadata.proto');

type AnyMethod = MethodDefinition<object, object>;
const methodsOf = (loaded: ReturnType<typeof load>, service: string): [string, AnyMethod][] =>
  Object.entries(loaded[service] as Record<string, AnyMethod>);

/**
 * A method whose requests never fail in grpc-js, which answers INTERNAL; that would be a fault of ours. Streams are
 * encoded by us: a response is bytes.
 */
function served(method: AnyMethod, path = method.path): AnyMethod {
  const { requestDeserialize } = method;
  const deserialize = (bytes: Buffer): object => {
    try {
      return requestDeserialize(bytes);
    } catch (error) {
      return new MalformedRequest((error as Error).message);
    }
  };
  const raw = method.responseStream ? { responseSerialize: (bytes: object) => bytes as Buffer } : {};
  return { ...method, ...raw, path, requestDeserialize: deserialize };
}

/** Without a package, and with the one that it has in the CSI specification. */
const DRAFT_SERVICES = ['SnapshotMetadata', 'csi.v1.SnapshotMetadata'];

const service = (methods: [string, AnyMethod][]): ServiceDefinition => Object.fromEntries(methods);

/** Methods of both of the draft's paths; the second ones have a longer key, since a definition has one key a method. */
export const DRAFT_SERVICE = service(
  DRAFT_SERVICES.flatMap(name =>
    methodsOf(draft, 'SnapshotMetadata').map(([key, method]): [string, AnyMethod] => [
      `${name}/${key}`,
      served(method, `/${name}/${key}`),
    ]),
  ),
);
export const CSI_METADATA_SERVICE = service(
  methodsOf(csi, 'csi.v1.SnapshotMetadata').map(([key, method]) => [key, served(method)]),
);
export const CSI_IDENTITY_SERVICE = service(
  methodsOf(csi, 'csi.v1.Identity').map(([key, method]) => [key, served(method)]),
);
export const SIDECAR_SERVICE = service(
  methodsOf(sidecar, 'snapshotmetadata.SnapshotMetadata').map(([key, method]) => [key, served(method)]),
);
