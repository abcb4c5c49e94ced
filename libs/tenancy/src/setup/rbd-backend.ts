import { resolve } from 'node:path';
import { type Config, ConfigError } from '#platform/config/config';

/** The backend of images of Ceph that the environment describes, with one pool; undefined without monitors. */
export function rbdBackend(config: Config) {
  const { TRIVET_RBD_MONITORS: monitors, TRIVET_RBD_USER: user, TRIVET_RBD_POOL: cephPool } = config;
  const { TRIVET_RBD_DATA_POOL: dataPool, TRIVET_RBD_CAPACITY_BYTES: capacityBytes } = config;
  if (monitors === undefined) return undefined;
  if (cephPool === undefined) throw new ConfigError('TRIVET_RBD_POOL: required with TRIVET_RBD_MONITORS');
  const portals = config.TRIVET_RBD_PORTALS ?? [];
  const further = config.TRIVET_RBD_FURTHER_PORTALS ?? [];
  if (further.length > 0 && portals.length === 0)
    throw new ConfigError('TRIVET_RBD_FURTHER_PORTALS: needs TRIVET_RBD_PORTALS, which come first');
  const [device, prefix] = config.TRIVET_RBD_MOVING_PORTALS?.split('/') ?? [];
  const moving = device === undefined ? undefined : { device, prefixLength: Number(prefix) };
  const pool = {
    name: 'ceph',
    cephPool,
    ...(dataPool === undefined ? {} : { dataPool }),
    ...(capacityBytes === undefined ? {} : { capacityBytes }),
    portals,
    ...(further.length === 0 ? {} : { furtherPortals: further }),
    ...(moving === undefined ? {} : { moving }),
    withoutChap: config.TRIVET_ISCSI_WITHOUT_CHAP,
  };
  const addresses = [
    ...new Set([...portals, ...further.flat()].map(portal => portal.replace(/:\d+$/, '').replace(/^\[|\]$/g, ''))),
  ];
  const folder = config.TRIVET_TGT_DIR ?? resolve(config.TRIVET_HOME, 'run', 'tgt');
  const exporter = portals.length > 0 ? { kind: 'tgt', folder } : { kind: 'none' };
  return { name: 'ceph', kind: 'rbd', config: { monitors, user, pools: [pool], addresses, exporter } };
}
