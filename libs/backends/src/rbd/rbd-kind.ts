import { join } from 'node:path';
import { z } from 'zod';
import type { BlockBackendKind } from '#backends/block-backend';
import { blockStore } from '#backends/block-store';
import type { ClusterExports } from '#backends/cluster-exports';
import type { Exporter } from '#backends/exporter';
import { HostFences } from '#backends/host-fence';
import { bootClock } from '#backends/linux/boot-clock';
import { NoExporter } from '#backends/no-exporter';
import { RbdBackend } from '#backends/rbd/rbd-backend';
import { portalSetsOf, type RbdConfig, rbdConfig, rbdCredentials } from '#backends/rbd/rbd-config';
import { RbdExtents } from '#backends/rbd/rbd-extents';
import { RBD_CAPABILITIES, rbdRegistration } from '#backends/rbd/rbd-registration';
import { rbdUnits } from '#backends/rbd/rbd-units';
import { checkFolder } from '#backends/reflink/layout';
import { lackingLink } from '#backends/tgt/portal-link';
import { splitPortal } from '#backends/tgt/portals';
import type { ClusterPortals } from '#backends/tgt/tgt-daemons';
import { TgtExporter } from '#backends/tgt/tgt-exporter';
import { TgtLeases } from '#backends/tgt/tgt-leases';
import { StorageError } from '#platform/errors';

/** Images of a Ceph cluster, seen on 16.2 (Pacific). Credentials: the key of its user. */
export const rbdKind: BlockBackendKind<RbdConfig> = {
  kind: 'rbd',
  isOfCluster: true,
  capabilities: RBD_CAPABILITIES,
  parseConfig: row => parsed(rbdConfig, row, 'configuration'),
  // Where they lie: the recycle bins of one place give way together.
  pools: ({ monitors, pools }) =>
    pools.map(pool => {
      const sets = portalSetsOf(pool);
      const path = `${monitors.join(',')}/${pool.cephPool}`;
      return { ...pool, path, portals: sets.flat(), ...(sets.length > 1 ? { portalSets: sets } : {}) };
    }),
  mostPublished({ exporter, pools }, name) {
    const pool = pools.find(one => one.name === name);
    return exporter.kind === 'none' || !pool ? undefined : exporter.maxUnits * portalSetsOf(pool).length;
  },
  checkFolder,
  registration: rbdRegistration,
  open(config, credentials, owner) {
    const { key } = parsed(rbdCredentials, credentials, 'credentials');
    const volumes = new RbdBackend(config, key, owner);
    const extents = new RbdExtents(config, key, owner);
    const store = blockStore(volumes, extents, exporterOf(config, key, volumes));
    return {
      ...store,
      cluster: clusterOf(config, volumes),
      close() {
        store.close();
        extents.close();
      },
    };
  },
};

function exporterOf(config: RbdConfig, key: string, volumes: RbdBackend): Exporter {
  if (config.exporter.kind === 'none') return new NoExporter();
  const { folder, maxUnits } = config.exporter;
  const fences = new HostFences(join(folder, 'fences'));
  const store = rbdUnits({ ...config, key }, maxUnits);
  return new TgtExporter({ folder, volumes, fences, store, cluster: portalsOf(config) });
}

function clusterOf(config: RbdConfig, { cluster }: RbdBackend): ClusterExports | undefined {
  if (config.exporter.kind === 'none') return undefined;
  const portals = portalsOf(config);
  const leases = new TgtLeases(config.exporter.folder, portals);
  return {
    look: signal => cluster.look(signal),
    shutOut: (addresses, signal) => cluster.shutOut(addresses, signal),
    letIn: (address, signal) => cluster.letIn(address, signal),
    lacksLink: name =>
      portals
        .sets(name)
        .map((set, nth) => lackingLink(set, portals.moving(name, nth)))
        .find(reason => reason !== undefined),
    hasLeftovers: () => cluster.hasLeftovers(),
    now: bootClock,
    hold: (pool, untilMs, askedAt) => leases.hold(pool, untilMs, askedAt),
    holdForever: pool => leases.holdForever(pool),
    drop: (pool, how, signal) => leases.drop(pool, how, signal),
    portalsHere: pool => leases.portalsHere(pool),
    sendOn: (pool, guide) => leases.sendOn(pool, guide),
  };
}

function portalsOf({ pools }: RbdConfig): ClusterPortals {
  const poolOf = (name: string) => pools.find(one => one.name === name);
  const sets = (name: string) => {
    const pool = poolOf(name);
    return pool ? portalSetsOf(pool) : [[]];
  };
  return {
    sets,
    moving(name, nth) {
      const moving = poolOf(name)?.moving;
      if (!moving) return [];
      const { device, prefixLength } = moving;
      const addresses = new Set(sets(name)[nth]?.map(portal => splitPortal(portal).address));
      return [...addresses].map(address => ({ address, device, prefixLength }));
    },
  };
}

/** Says what is wrong by its place alone: what was given may be a key. */
function parsed<T>(schema: z.ZodType<T>, given: unknown, what: string): T {
  const found = schema.safeParse(given);
  if (found.success) return found.data;
  throw new StorageError('internal', `${what} of the rbd backend: ${z.prettifyError(found.error)}`);
}
