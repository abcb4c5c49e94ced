import { join } from 'node:path';
import {
  type handleServerStreamingCall,
  type MethodDefinition,
  type ServerWritableStream,
  type ServiceDefinition,
  status,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { Logger } from '#platform/logging/log';
import { PACKAGE_ROOT } from '#platform/package-root';
import type { Service } from '#protocol/grpc-endpoint';
import { connectorMetadataRefusalsTotal } from '../connector-metrics.js';
import { type KubeClient, KubeError } from '../kube/kube-client.js';
import type { AccessReviews, UserInfo } from '../sessions/access-reviews.js';
import { Refused } from '../sessions/refused.js';
import type { Upstream } from '../sessions/relay.js';
import { findSnapshot, SessionFailed } from '../sessions/snapshot-handles.js';
import { type TokenReviews, TooManyReviews } from './token-reviews.js';

/**
 * snapshotmetadata.SnapshotMetadata, the form of KEP 3314 that the community ships, in the place of its sidecar: with the checks, the codes and
 * the words of external-snapshot-metadata 1.1 (pkg/internal/server/grpc). The token is one of Kubernetes for the audience that the
 * SnapshotMetadataService names. With the handle in the place of the name the call goes on to Trivet's csi.v1 service, whose messages are
 * the same on the wire, so they are passed on byte by byte.
 */
const load = (file: string, service: string) =>
  loadSync(join(PACKAGE_ROOT, 'proto', file), { defaults: true, longs: String, keepCase: true })[
    service
  ] as unknown as Record<'GetMetadataAllocated' | 'GetMetadataDelta', MethodDefinition<object, object>>;
const METHODS = load('snapshotmetadata/snapshot-metadata.proto', 'snapshotmetadata.SnapshotMetadata');
const UPSTREAM = load('csi/v1/snapshot-metadata.proto', 'csi.v1.SnapshotMetadata');

interface Common {
  security_token: string;
  namespace: string;
  starting_offset: string;
  max_results: number;
}
interface AllocatedRequest extends Common {
  snapshot_name: string;
}
interface DeltaRequest extends Common {
  base_snapshot_id: string;
  target_snapshot_name: string;
}

export interface MetadataParts {
  kube: KubeClient;
  tokens: TokenReviews;
  access: AccessReviews;
  /** Whose snapshots they are. */
  driver: string;
  log: Logger;
}

/** As Kubernetes has them; what is no name is asked for nowhere. */
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

export function metadataService(parts: MetadataParts, upstream: Upstream): Service {
  const answer =
    <Request extends Common>(
      method: keyof typeof METHODS,
      translate: (parts: MetadataParts, request: Request) => Promise<object>,
    ): handleServerStreamingCall<Request, Buffer> =>
    call =>
      void serve(parts, call, async () => {
        const request = await translate(parts, call.request);
        if (!call.cancelled) upstream.relay(UPSTREAM[method], request, call);
      });
  const handlers = {
    GetMetadataAllocated: answer('GetMetadataAllocated', allocated),
    GetMetadataDelta: answer('GetMetadataDelta', delta),
  };
  const definition = Object.fromEntries(
    Object.entries(METHODS).map(([name, method]) => [name, { ...method, responseSerialize: (bytes: Buffer) => bytes }]),
  );
  return [definition as unknown as ServiceDefinition, handlers as never];
}

async function serve(
  { log }: MetadataParts,
  call: ServerWritableStream<unknown, Buffer>,
  answer: () => Promise<void>,
): Promise<void> {
  try {
    await answer();
  } catch (error) {
    const refused = error instanceof Refused ? error : new Refused(status.INTERNAL, 'the call could not be looked at');
    connectorMetadataRefusalsTotal.inc({ code: status[refused.code] });
    log.warn({ reason: refused.message, err: refused === error ? undefined : error }, 'a reader was refused');
    call.emit('error', { code: refused.code, details: refused.message });
  }
}

async function allocated(parts: MetadataParts, request: AllocatedRequest): Promise<object> {
  const { namespace, snapshot_name: name, starting_offset, max_results } = request;
  requireCommon(request);
  required(name, 'snapshotName cannot be empty');
  return { snapshot_id: await handleOf(parts, request, namespace, name), starting_offset, max_results };
}

/** The base is named by its handle: it may be gone from the cluster, and Trivet still knows what changed since. */
async function delta(parts: MetadataParts, request: DeltaRequest): Promise<object> {
  const { namespace, base_snapshot_id, target_snapshot_name: name, starting_offset, max_results } = request;
  requireCommon(request);
  required(base_snapshot_id, 'baseSnapshotId cannot be empty');
  required(name, 'targetSnapshotName cannot be empty');
  const target_snapshot_id = await handleOf(parts, request, namespace, name);
  return { base_snapshot_id, target_snapshot_id, starting_offset, max_results };
}

function requireCommon({ security_token, namespace }: Common): void {
  required(security_token, 'securityToken is missing');
  required(namespace, 'namespace parameter cannot be empty');
}

function required(value: string, otherwise: string): void {
  if (!value) throw new Refused(status.INVALID_ARGUMENT, otherwise);
}

/** First who asks, then whether they may, then what it is: nobody learns of a snapshot that they may not read. */
async function handleOf(parts: MetadataParts, { security_token }: Common, namespace: string, name: string) {
  const user = await identify(parts, security_token);
  if (!NAMESPACE.test(namespace) || !NAME.test(name))
    throw new Refused(status.UNAVAILABLE, `failed to get VolumeSnapshot '${shown(namespace)}/${shown(name)}': no name`);
  await authorize(parts, user, namespace, name);
  return find(parts, namespace, name);
}

async function identify({ tokens }: MetadataParts, token: string): Promise<UserInfo> {
  const user = await tokens.userOf(token).catch(error => {
    if (error instanceof TooManyReviews)
      throw new Refused(status.RESOURCE_EXHAUSTED, 'too many readers are being identified; try again');
    throw new Refused(status.INTERNAL, `failed to authenticate user: ${said(error)}`);
  });
  if (!user) throw new Refused(status.UNAUTHENTICATED, 'unauthenticated user');
  return user;
}

async function authorize({ access }: MetadataParts, user: UserInfo, namespace: string, name: string): Promise<void> {
  const denied = await access.denied(user, namespace, [name]).catch(error => {
    throw new Refused(status.INTERNAL, `failed to authorize the user: ${said(error)}`);
  });
  if (denied.length > 0)
    throw new Refused(
      status.PERMISSION_DENIED,
      `user does not have permissions to perform the operation: ${user.username} may not get volumesnapshots in ${namespace}`,
    );
}

async function find({ kube, driver }: MetadataParts, namespace: string, name: string): Promise<string> {
  const found = await findSnapshot(kube, namespace, name, { mayBeGoing: true }).catch(error => {
    const why = error instanceof SessionFailed ? error.message : said(error);
    throw new Refused(status.UNAVAILABLE, `failed to get VolumeSnapshot '${namespace}/${name}': ${why}`);
  });
  if (found.driver !== driver)
    throw new Refused(
      status.INVALID_ARGUMENT,
      `VolumeSnapshot '${name}' does not belong to the CSI driver '${driver}'`,
    );
  return found.snapshotHandle;
}

const MAX_SHOWN = 100;
const shown = (text: string): string => text.slice(0, MAX_SHOWN);

/** What an API server says may be told; where it is when it cannot be reached, may not. */
const said = (error: unknown): string =>
  error instanceof KubeError ? `the API server answers ${error.message}` : 'the API server does not answer';
