import type { BlockBackend, BlockStore } from '#backends/block-backend';
import type { ClusterExports } from '#backends/cluster-exports';
import type { Exporter } from '#backends/exporter';
import { meteredExtents } from '#backends/metered-extents';
import type { ObjectBackend } from '#backends/object-backend';
import { isStorageError } from '#platform/errors';
import { countBackendCall } from '#platform/metrics/metrics';

/** What is counted and timed of a port; `plain` goes through. One that is missing here does not compile. */
type Methods<Port> = Record<keyof Port, 'counted' | 'plain'>;

const OBJECT_METHODS = {
  health: 'counted',
  diagnose: 'plain',
  tryRights: 'plain',
  inspectBucket: 'counted',
  createBucket: 'counted',
  configureBucket: 'counted',
  emptyBucket: 'counted',
  isBucketEmpty: 'counted',
  deleteBucket: 'counted',
  putPrincipal: 'counted',
  traits: 'plain',
  holdsPrincipal: 'counted',
  issueKey: 'counted',
  isInForce: 'counted',
  removeKey: 'counted',
  removePrincipal: 'counted',
  putGrants: 'counted',
  holdsGrants: 'counted',
  signAccess: 'plain',
  measureBucket: 'counted',
  limitTenant: 'counted',
  forgetTenant: 'counted',
  close: 'plain',
} as const satisfies Methods<ObjectBackend>;

const BLOCK_METHODS = {
  health: 'counted',
  inspectPools: 'counted',
  preparePool: 'counted',
  surveyPool: 'counted',
  inspectImage: 'counted',
  predictCut: 'counted',
  stage: 'counted',
  stageTogether: 'counted',
  commit: 'counted',
  discardStages: 'counted',
  growImage: 'counted',
  removeImage: 'counted',
  listImages: 'plain',
  pathOf: 'plain',
  close: 'plain',
} as const satisfies Methods<BlockBackend>;

const EXPORTER_METHODS = {
  health: 'counted',
  ensureDaemon: 'counted',
  daemonInstance: 'counted',
  applyTarget: 'counted',
  resizeTarget: 'counted',
  removeTarget: 'counted',
  listTargets: 'counted',
  ioSince: 'counted',
  writers: 'counted',
  suspectTargets: 'counted',
  stopDaemon: 'counted',
  close: 'plain',
} as const satisfies Methods<Exporter>;

const CLUSTER_METHODS = {
  look: 'counted',
  shutOut: 'counted',
  letIn: 'counted',
  hasLeftovers: 'plain',
  lacksLink: 'plain',
  now: 'plain',
  hold: 'plain',
  holdForever: 'plain',
  drop: 'counted',
  portalsHere: 'plain',
  sendOn: 'plain',
} as const satisfies Methods<ClusterExports>;

const resultOf = (error: unknown) => (isStorageError(error) ? error.kind : 'internal');

/** The same port, with its calls counted and timed by kind of backend, method (under `prefix`) and result. */
function metered<Port extends object>(kind: string, port: Port, methods: Methods<Port>, prefix = ''): Port {
  const wrapped: Record<string, unknown> = {};
  for (const [name, how] of Object.entries(methods)) {
    const call = (port[name as keyof Port] as (...args: unknown[]) => unknown).bind(port);
    wrapped[name] =
      how === 'plain'
        ? call
        : (...args: unknown[]) =>
            countBackendCall(kind, `${prefix}${name}`, resultOf, async () => call(...args) as Promise<unknown>);
  }
  return wrapped as Port;
}

export const meteredObjectBackend = (kind: string, backend: ObjectBackend): ObjectBackend =>
  metered(kind, backend, OBJECT_METHODS);

export function meteredBlockStore(kind: string, store: BlockStore): BlockStore {
  return {
    volumes: metered(kind, store.volumes, BLOCK_METHODS),
    extents: meteredExtents(kind, store.extents),
    // Both ports have a health of their own.
    exporter: metered(kind, store.exporter, EXPORTER_METHODS, 'exporter.'),
    ...(store.cluster ? { cluster: metered(kind, store.cluster, CLUSTER_METHODS, 'cluster.') } : {}),
    health: signal => store.health(signal),
    close: () => store.close(),
  };
}
