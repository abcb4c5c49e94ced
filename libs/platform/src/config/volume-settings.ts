/** Of volumes: pools, targets, CSP and changed blocks. */
import { z } from 'zod';
import { pools, portals, scsiIdentity } from '#platform/config/block-forms';
import { duration, flag, hostAndPort, listen, unixEndpoint } from '#platform/config/setting-forms';

/** One with addresses of both protocols has a comma within its brackets: `[v2:10.0.0.5:3300,v1:10.0.0.5:6789]`. */
function splitMonitors(text: string): string[] {
  const monitors = [''];
  let depth = 0;
  for (const letter of text) {
    if (letter === '[') depth++;
    if (letter === ']') depth--;
    if (letter === ',' && depth === 0) monitors.push('');
    else monitors.push(monitors.pop() + letter);
  }
  return monitors.map(monitor => monitor.trim());
}

export const volumeSettings = {
  /** Where clients reach TRIVET_CBT_LISTEN; that address itself when absent. */
  TRIVET_CBT_PUBLIC_ADDRESS: hostAndPort.optional(),
  /** How long a snapshot session lives that does not ask for a time of its own. */
  TRIVET_SNAPSHOT_SESSION_TTL_MS: duration(600_000, { min: 1_000, max: 86_400_000 }),
  /** Below which CSP is served a second time; the driver's `path`. */
  TRIVET_CSP_CONTEXT_PATH: z
    .string()
    .regex(/^\/?[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*\/?$/, 'expected a path of letters, digits, . _ and -')
    .transform(path => path.replace(/^\/|\/$/g, ''))
    .default('csp'),
  /** TLS, with the certificate of HTTPS. */
  TRIVET_CBT_LISTEN: z.union([z.literal('none'), listen]).default({ host: '127.0.0.1', port: 8745 }),
  /** csi.v1.SnapshotMetadata for the sidecar: serves one tenant to whoever may connect. */
  TRIVET_CSI_ENDPOINT: unixEndpoint.optional(),
  TRIVET_CSI_DRIVER_NAME: z
    .string()
    .max(63)
    .regex(/^[A-Za-z]([-A-Za-z0-9.]*[A-Za-z])?$/, 'expected letters, digits, - and ., a letter at either end')
    .default('csi.hpe.com'),
  TRIVET_CSI_SOCKET_GROUP: z.string().optional(),
  /** How long a reader of changed blocks may read nothing. */
  // Connections are given some times longer, and no timer is.
  TRIVET_CBT_STALL_MS: duration(120_000, { max: 86_400_000 }),
  /** What drivers may call the backend `local` in array_ip, besides its name and the addresses of its portals. */
  TRIVET_CSP_ADDRESSES: z
    .string()
    .transform(text => text.split(',').map(address => address.trim()))
    .pipe(z.array(z.string().regex(/^([A-Za-z0-9._-]{1,253}|[0-9a-fA-F:.]{2,45})$/, 'expected a host name or address')))
    .optional(),
  /** The password that `migrate` gives to the user csp of the tenant default when it makes it. */
  TRIVET_CSP_PASSWORD_FILE: z.string().optional(),
  TRIVET_CSP_TOKEN_TTL_MS: duration(1_800_000),
  /** Folders that hold block volumes; `migrate` registers them as the backend `local`. */
  TRIVET_POOLS: pools.optional(),
  /** Where their targets are served; without any nothing is exported. */
  TRIVET_ISCSI_PORTALS: portals.optional(),
  /** Sockets of tgtd: a short path. run/tgt in TRIVET_HOME when absent. */
  TRIVET_TGT_DIR: z.string().startsWith('/', 'expected an absolute path').optional(),
  /** Of a Ceph cluster for block volumes; `migrate` registers it as the backend `ceph`, with one pool of that name. */
  TRIVET_RBD_MONITORS: z.string().transform(splitMonitors).optional(),
  TRIVET_RBD_USER: z.string().default('trivet'),
  TRIVET_RBD_KEY_FILE: z.string().optional(),
  TRIVET_RBD_POOL: z.string().optional(),
  TRIVET_RBD_DATA_POOL: z.string().optional(),
  TRIVET_RBD_CAPACITY_BYTES: z.coerce.number().int().positive().optional(),
  /** `address:port` each. */
  TRIVET_RBD_PORTALS: z
    .string()
    .transform(text => text.split(',').map(portal => portal.trim()))
    .pipe(z.array(z.string().regex(/^(\[[0-9a-fA-F:.]+\]|[^:\s]+):\d{1,5}$/, 'expected address:port')))
    .optional(),
  /** Sets of portals, separated by semicolons: one more tgtd for each. */
  TRIVET_RBD_FURTHER_PORTALS: z
    .string()
    .transform(text => text.split(';').map(set => set.split(',').map(portal => portal.trim())))
    .pipe(z.array(z.array(z.string().regex(/^(\[[0-9a-fA-F:.]+\]|[^:\s]+):\d{1,5}$/, 'expected address:port'))))
    .optional(),
  /** `bond0/24`: the portals' addresses move with the pool, from one storage host's interface of that name to another's. */
  TRIVET_RBD_MOVING_PORTALS: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9_.@-]{0,14}\/\d{1,3}$/, 'expected interface/prefix length, e.g. bond0/24')
    .optional(),
  /** How often Postgres, images and targets are compared. */
  TRIVET_BLOCK_AUDIT_MS: duration(300_000),
  TRIVET_INDEX_RETENTION_MS: duration(2_592_000_000, { min: 0, max: 31_536_000_000 }),
  /** How long a deleted volume can be restored. */
  TRIVET_RECYCLE_MS: duration(86_400_000, { min: 0, max: 31_536_000_000 }),
  /** Disjoint on appliances that share hosts: a disk's identity is made of it. */
  TRIVET_TARGET_IDS: z
    .string()
    .regex(/^[1-9]\d{0,8}-[1-9]\d{0,8}$/, 'expected lowest-highest, e.g. 1-99999')
    .default('1-999999999')
    .transform(value => value.split('-').map(Number) as [number, number])
    .refine(([low, high]) => low <= high, 'expected the lower one first'),
  /** What disks call themselves from their next publication on: docs/adr/0022. */
  TRIVET_SCSI_IDENTITY: scsiIdentity.prefault('Nimble/Server'),
  /** Hosts without CHAP are served at portals beyond loopback. */
  TRIVET_ISCSI_WITHOUT_CHAP: flag,
};
