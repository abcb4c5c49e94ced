import { resolve } from 'node:path';
import { type Config, ConfigError } from '#platform/config/config';

/** The backend of block volumes that the environment describes; undefined without pools. */
export function localBackend(config: Config) {
  const { TRIVET_POOLS: configured = [], TRIVET_ISCSI_PORTALS: portals = [] } = config;
  if (configured.length === 0) {
    if (portals.length > 0) throw new ConfigError('TRIVET_ISCSI_PORTALS: there is no pool to serve; set TRIVET_POOLS');
    return undefined;
  }
  const [first] = configured;
  for (const { pool } of portals)
    if (pool !== undefined && !configured.some(({ name }) => name === pool))
      throw new ConfigError(`TRIVET_ISCSI_PORTALS: TRIVET_POOLS has no pool ${pool}`);
  const pools = configured.map(({ name, path }) => ({
    name,
    path,
    portals: portals.filter(({ pool }) => (pool ?? first!.name) === name).map(({ portal }) => portal),
    withoutChap: config.TRIVET_ISCSI_WITHOUT_CHAP,
  }));
  const served = portals.map(({ portal }) => portal.replace(/:\d+$/, '').replace(/^\[|\]$/g, ''));
  const addresses = [...new Set([...(config.TRIVET_CSP_ADDRESSES ?? []), ...served])];
  const folder = config.TRIVET_TGT_DIR ?? resolve(config.TRIVET_HOME, 'run', 'tgt');
  const exporter = portals.length > 0 ? { kind: 'tgt', folder } : { kind: 'none' };
  return { name: 'local', kind: 'reflink', config: { pools, addresses, exporter }, credentials: {} };
}
