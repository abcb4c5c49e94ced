import { z } from 'zod';
import { noExporterConfig, otherNames, poolConfig, portal, tgtConfig } from '#backends/reflink/reflink-config';

const cephPool = z
  .string()
  .regex(
    /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/,
    'expected letters, digits, dots, dashes and underscores; no RADOS namespace',
  )
  .meta({ title: 'Ceph pool' });
const unique = (values: readonly string[]): boolean => new Set(values).size === values.length;

export const rbdPoolConfig = poolConfig.omit({ path: true, within: true, sharePortals: true }).extend({
  cephPool: cephPool.meta({
    description:
      'Replicated, with the application rbd, and without a RADOS namespace: tgtd opens no images in one. Images of others in it are left alone',
  }),
  dataPool: cephPool.optional().meta({
    title: 'Data pool',
    description: 'Where the data go when they are erasure-coded; with allow_ec_overwrites',
  }),
  furtherPortals: z
    .array(z.array(portal).min(1))
    .default([])
    .meta({
      title: 'Portals of further daemons',
      description:
        'For each set of portals one more tgtd serves the pool, with maxUnits volumes of its own. A volume goes to the one that serves the fewest',
      examples: [[['10.0.0.6:3260']]],
    }),
  moving: z
    .strictObject({
      device: z
        .string()
        .regex(/^[A-Za-z0-9][A-Za-z0-9_.@-]{0,14}$/, 'expected the name of a network interface')
        .meta({ title: 'Interface', description: 'Of each storage host, by this name', examples: ['bond0'] }),
      prefixLength: z
        .int()
        .min(1)
        .max(128)
        .meta({ title: 'Prefix length', description: 'Of the network that the addresses are in', examples: [24] }),
    })
    .optional()
    .meta({
      title: 'Moving portals',
      description:
        'The addresses of the portals belong to no host: the one that serves the pool adds them to this interface. Without, ' +
        'portals are addresses of storage hosts, and each opens its own',
    }),
  capacityBytes: z.int().positive().optional().meta({
    title: 'Capacity',
    description: 'Bytes that may be used, where neither a quota nor the manager of the cluster says so',
  }),
});
export type RbdPoolConfig = z.output<typeof rbdPoolConfig>;

/** By daemon: one serves each set. */
export const portalSetsOf = ({
  portals,
  furtherPortals,
}: Pick<RbdPoolConfig, 'portals' | 'furtherPortals'>): readonly (readonly string[])[] => [portals, ...furtherPortals];

/** Its Ceph pools: the first has images and their headers, another one the data. */
export const cephPoolsOf = ({ cephPool, dataPool }: Pick<RbdPoolConfig, 'cephPool' | 'dataPool'>): string[] =>
  dataPool === undefined ? [cephPool] : [cephPool, dataPool];

/** Of `10.0.0.5`, `mon:6789`, or `[v2:10.0.0.5:3300/0,v1:10.0.0.5:6789/0]`. */
export const hostsOf = (monitor: string): string[] =>
  monitor
    .replace(/^\[(v[12]:.*)\]$/, '$1')
    .split(',')
    .map(address => address.replace(/^v[12]:/, '').replace(/\/\d+$/, ''));

const isMonitor = (monitor: string): boolean =>
  /^[[\]0-9A-Za-z:.,/_-]+$/.test(monitor) && hostsOf(monitor).every(host => URL.canParse(`http://${host}`));

const rbdTgtConfig = tgtConfig.extend({
  maxUnits: z.int().min(1).max(1_000).default(100).meta({
    title: 'Most volumes of a tgtd',
    description:
      'Published at once: each takes 31 threads and 2 MB. A pool has one tgtd, and one more for each set of furtherPortals',
  }),
});

export const rbdConfig = z
  .strictObject({
    monitors: z
      .array(z.string().refine(isMonitor, 'expected the address of a monitor'))
      .min(1)
      .meta({ title: 'Monitors', description: 'Their addresses', examples: [['10.0.0.5', '10.0.0.6', '10.0.0.7']] }),
    user: z
      .string()
      .regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$/, 'expected the name without `client.`')
      .meta({ title: 'User', description: 'Without `client.`', examples: ['trivet'] }),
    pools: z
      .array(rbdPoolConfig)
      .refine(pools => unique(pools.map(({ name }) => name)), 'two pools have one name')
      .refine(pools => unique(pools.map(({ cephPool: pool }) => pool)), 'two pools are one pool of Ceph')
      .refine(
        pools => pools.every(pool => pool.furtherPortals.length === 0 || unique(portalSetsOf(pool).flat())),
        'two daemons of a pool have one portal',
      )
      .refine(
        pools => pools.every(pool => pool.furtherPortals.length === 0 || pool.portals.length > 0),
        'furtherPortals without portals: those of the first daemon come first',
      )
      .meta({ title: 'Pools', description: 'Pools of Ceph in which volumes are images' }),
    addresses: otherNames,
    exporter: z
      .discriminatedUnion('kind', [rbdTgtConfig, noExporterConfig])
      .meta({ title: 'Exporter', description: 'By what volumes reach hosts' }),
  })
  .meta({ title: 'Ceph RBD', description: 'Volumes as images of a Ceph cluster' });
export type RbdConfig = z.output<typeof rbdConfig>;

export const rbdCredentials = z
  .strictObject({
    key: z
      .string()
      .regex(/^[A-Za-z0-9+/]{20,}={0,2}$/, 'expected a key as `ceph auth get-key` shows it')
      .meta({ title: 'Key', description: 'As `ceph auth get-key` shows it', format: 'password' }),
  })
  .meta({
    description:
      "Of the user, with the caps mon 'profile rbd' and osd 'profile rbd pool=POOL' for each pool; where there are several storage hosts, mon 'profile rbd, allow command \"osd blocklist\"'",
  });
