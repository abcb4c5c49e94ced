import { z } from 'zod';

export const portal = z.string().regex(/^(\[[0-9a-fA-F:.]+\]|[^:\s]+):\d{1,5}$/, 'expected address:port');
const absolute = z.string().regex(/^\//, 'expected an absolute path');

export const poolConfig = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'expected letters, digits, dots, dashes and underscores')
      .meta({ title: 'Name', description: 'As volumes and storage classes name it', examples: ['fast'] }),
    path: absolute.meta({
      title: 'Path',
      description:
        'Its root, empty at first. Pools may be folders of one file system; each then reports the numbers of all of it',
      examples: ['/srv/trivet/fast'],
    }),
    portals: z
      .array(portal)
      .default([])
      .meta({
        title: 'Portals',
        description: 'Address and port at which hosts reach its volumes',
        examples: [['10.0.0.5:3260']],
      }),
    sharePortals: z
      .array(portal)
      .optional()
      .meta({
        title: 'Portals of shares',
        description:
          'Each share takes the next of them, as many as there are portals; without, the next free port. Nodes of the HPE ' +
          'CSI driver come to port 3260 alone',
        examples: [['10.0.0.6:3260']],
      }),
    host: z
      .string()
      .regex(/^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/, 'expected the name of a storage host')
      .optional()
      .meta({
        title: 'Storage host',
        description: 'Which of several hosts takes it into use; one that is in use stays where it is',
        examples: ['node-a'],
      }),
    withoutChap: z.boolean().default(false).meta({
      title: 'Hosts without CHAP',
      description: 'Whoever reaches a portal may log in under the name of a host',
    }),
    within: z
      .strictObject({
        path: absolute.meta({ description: 'Its root' }),
        ownerId: z.uuid().meta({ description: 'Id of the tenant whose pool it is' }),
      })
      .optional()
      .meta({ readOnly: true, description: 'The shared pool that a share lies in; sharing writes it' }),
  })
  .meta({ title: 'Pool' });

export const otherNames = z.array(z.string()).default([]).meta({
  title: 'Other names',
  description: 'What callers may name it by, besides its name. Nothing is connected to at them',
});
export const tgtConfig = z
  .strictObject({
    kind: z.literal('tgt').meta({ description: 'By tgtd, over iSCSI' }),
    folder: absolute.meta({
      title: 'Folder',
      description: 'Sockets, pid files and fences of tgtd; a short path',
      examples: ['/run/trivet/tgt'],
    }),
  })
  .meta({ title: 'tgtd, over iSCSI' });
export const noExporterConfig = z
  .strictObject({ kind: z.literal('none').meta({ description: 'By nothing' }) })
  .meta({ title: 'none: volumes reach no host' });

const unique = (values: readonly string[]): boolean => new Set(values).size === values.length;

export const reflinkConfig = z
  .strictObject({
    pools: z
      .array(poolConfig)
      .refine(pools => unique(pools.map(({ name }) => name)), 'two pools have one name')
      .refine(pools => unique(pools.map(({ path }) => path)), 'two pools have one path')
      .meta({ title: 'Pools', description: 'File systems in which volumes are files' }),
    addresses: otherNames,
    exporter: z
      .discriminatedUnion('kind', [tgtConfig, noExporterConfig])
      .meta({ title: 'Exporter', description: 'By what volumes reach hosts' }),
  })
  .meta({ title: 'Files on XFS or btrfs', description: 'Volumes as files, exported over iSCSI' });
export type ReflinkConfig = z.output<typeof reflinkConfig>;

export const reflinkCredentials = z.strictObject({});
