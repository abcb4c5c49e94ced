import { z } from 'zod';
import { poolConfig } from '#backends/reflink/reflink-config';

const cephPool = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/, 'expected letters, digits, dots, dashes and underscores')
  .meta({ title: 'Ceph pool' });
const unique = (values: readonly string[]): boolean => new Set(values).size === values.length;

export const rbdPoolConfig = poolConfig.omit({ path: true, within: true, sharePortals: true }).extend({
  cephPool: cephPool.meta({
    description: 'Replicated, with the application rbd. Images of others in it are left alone',
  }),
  dataPool: cephPool.optional().meta({
    title: 'Data pool',
    description: 'Where the data go when they are erasure-coded',
  }),
  capacityBytes: z.int().positive().optional().meta({
    title: 'Capacity',
    description: 'Bytes that may be used, where neither a quota nor the manager of the cluster says so',
  }),
});
export type RbdPoolConfig = z.output<typeof rbdPoolConfig>;

export const rbdConfig = z
  .strictObject({
    monitors: z
      .array(z.string().regex(/^[[\]0-9A-Za-z:.,/_-]+$/, 'expected addresses of monitors'))
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
      .meta({ title: 'Pools' }),
  })
  .meta({ title: 'Ceph RBD', description: 'Volumes as images of a Ceph cluster' });
export type RbdConfig = z.output<typeof rbdConfig>;

export const rbdCredentials = z
  .strictObject({ key: z.string().min(1).meta({ title: 'Key', format: 'password' }) })
  .meta({ description: "Of the user, with the caps mon 'profile rbd' and osd 'profile rbd pool=POOL' for each pool" });
