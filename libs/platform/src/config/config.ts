import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { pools, portals, scsiIdentity } from '#platform/config/block-settings';
import { ADDRESS_FORM, parseAddress } from '#platform/config/database-address';
import { oidcIssuer, oidcLoginClaim, oidcScopes, publicUrl } from '#platform/config/oidc-variables';

/** BSD's EX_CONFIG: a supervisor must not restart a process that stops with it. */
export const EXIT_CONFIG = 78;
/** The disk has no room, or the user's quota of it (sysexits.h: EX_IOERR). */
export const EXIT_FULL = 74;

/** sun_path holds 108 bytes with its end; beyond that Node says only EADDRINUSE. */
export const MAX_SOCKET_PATH = 107;

export class ConfigError extends Error {}

const listen = z
  .string()
  .regex(/^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/, 'expected host:port')
  .transform(value => {
    const at = value.lastIndexOf(':');
    return { host: value.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(value.slice(at + 1)) };
  })
  .refine(({ port }) => port <= 65_535, 'expected a port up to 65535');
export type Listen = z.output<typeof listen>;

const postgresUrl = z
  .string()
  .regex(/^postgres(ql)?:\/\//, { error: 'expected postgresql://user:password@host:port/database', abort: true })
  .refine(text => parseAddress(text) !== undefined, `expected ${ADDRESS_FORM}; target_session_attrs is read-write`);

const unixEndpoint = z
  .string()
  .regex(/^unix:\/\/\/.+\.sock$/, 'expected unix:///absolute/path/name.sock')
  .transform(value => value.slice('unix://'.length))
  .refine(path => Buffer.byteLength(path) <= MAX_SOCKET_PATH, {
    error: issue => {
      const length = Buffer.byteLength(String(issue.input));
      return `expected a socket path of at most ${MAX_SOCKET_PATH} bytes, got ${length}`;
    },
  });

/** Node's timers fire at once beyond this. */
const MAX_TIMER_MS = 2_147_483_647;
/** A longer value is no number that somebody mistyped; it may be a secret in the wrong place. */
const MAX_SHOWN = 16;

/** @param unit what is counted, for the message */
const wholeNumber = (unit: string, fallback: number, { min = 1, max = MAX_TIMER_MS } = {}) =>
  z
    .string()
    .transform((text, context) => {
      const value = text.trim() === '' ? Number.NaN : Number(text);
      if (Number.isInteger(value) && value >= min && value <= max) return value;
      const got = text.length > MAX_SHOWN ? `${text.length} characters` : JSON.stringify(text);
      context.addIssue(`expected a whole number of ${unit} from ${min} to ${max}, got ${got}`);
      return z.NEVER;
    })
    .default(fallback);
const duration = (fallback: number, within?: { min?: number; max?: number }) =>
  wholeNumber('milliseconds', fallback, within);
const flag = z
  .enum(['0', '1'])
  .default('0')
  .transform(value => value === '1');

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

/**
 * Every setting of every process. Only what starts with TRIVET_ is ours; COSI_ENDPOINT is the specification's, and no
 * setting of ours may begin with COSI_. docs/settings.md lists them for people.
 */
export const configSchema = z.strictObject({
  /** Application role: row security forced, sees one tenant at a time. */
  TRIVET_DATABASE_URL: postgresUrl.optional(),
  /** Engine role: operations of all tenants, nothing else. */
  TRIVET_DATABASE_ENGINE_URL: postgresUrl.optional(),
  /** Owner role: migrations and setup only. */
  TRIVET_DATABASE_OWNER_URL: postgresUrl.optional(),
  /**
   * Where `migrate` writes a backup before it changes a database that volumes or buckets are in; absent: below TRIVET_HOME.
   * none: it makes none and asks for none. recent: it makes none, and one of the last day has to be there.
   */
  TRIVET_UPGRADE_BACKUPS: z.string().min(1).optional(),
  TRIVET_DATABASE_POOL: wholeNumber('connections', 10),
  /** For how many standbys a commit must wait; it is PostgreSQL's own setting that makes it wait, and this is looked after. */
  TRIVET_DATABASE_STANDBYS: wholeNumber('standbys', 0, { min: 0, max: 10 }),
  TRIVET_REDIS_URL: z
    .union([z.literal('none'), z.string().regex(/^rediss?:\/\//, 'expected redis://host:port, or none')])
    .optional(),
  TRIVET_REDIS_PREFIX: z.string().min(1).default('trivet'),
  TRIVET_KEK_FILE: z.string().min(1).optional(),
  TRIVET_HTTP_LISTEN: listen.default({ host: '127.0.0.1', port: 8740 }),
  TRIVET_HTTPS_LISTEN: z.union([z.literal('none'), listen]).default({ host: '127.0.0.1', port: 8743 }),
  TRIVET_TLS_CERT_FILE: z.string().min(1).optional(),
  TRIVET_TLS_KEY_FILE: z.string().min(1).optional(),
  /** Who signed TRIVET_TLS_CERT_FILE, for clients that are told whom to trust; that certificate itself when absent. */
  TRIVET_TLS_CA_FILE: z.string().min(1).optional(),
  /** Where clients reach TRIVET_CBT_LISTEN; that address itself when absent. */
  TRIVET_CBT_PUBLIC_ADDRESS: z
    .string()
    .regex(/^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/, 'expected host:port')
    .optional(),
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
  /** Where connectors of clusters come in, over mutual TLS. */
  TRIVET_CLUSTER_LISTEN: z.union([z.literal('none'), listen]).default('none'),
  /** Of a connector: the gateways' TRIVET_CLUSTER_LISTEN. */
  TRIVET_GATEWAYS: z
    .string()
    .transform(text => text.split(',').map(address => address.trim()))
    .pipe(z.array(listen).min(1))
    .optional(),
  /** Of a connector: which endpoints it serves, and where. */
  TRIVET_CONNECTOR_SOCKETS: z
    .string()
    .transform(text => text.split(',').map(socket => socket.trim().split('=')))
    .pipe(
      z.array(
        z
          .tuple([
            z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'expected endpoint=unix:///path/name.sock'),
            unixEndpoint,
          ])
          .transform(([endpoint, path]) => ({ endpoint, path })),
      ),
    )
    .optional(),
  TRIVET_CONNECTOR_SOCKET_GROUP: z.string().optional(),
  TRIVET_CONNECTOR_LISTEN: listen.default({ host: '127.0.0.1', port: 8748 }),
  /** Of a connector: `in-cluster`, or a kubeconfig. With it the KEP's snapshot sessions are served in the cluster. */
  TRIVET_KUBERNETES: z
    .string()
    .refine(
      where => where === 'in-cluster' || where.startsWith('/'),
      'expected in-cluster, or the absolute path of a kubeconfig',
    )
    .optional(),
  /** Of TRIVET_CONNECTOR_SOCKETS the one that snapshots of a session are read by. */
  TRIVET_SESSION_ENDPOINT: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'expected the name of an endpoint')
    .optional(),
  /** Of the tokens of Kubernetes that TRIVET_CBT_LISTEN of a connector takes; it takes none when absent. */
  TRIVET_METADATA_AUDIENCE: z
    .string()
    .regex(/^[\x21-\x7e]{1,253}$/, 'expected 1 to 253 printable characters without spaces')
    .optional(),
  /** The session manager: its admission webhook, HTTPS. */
  TRIVET_SESSION_WEBHOOK_LISTEN: z.union([z.literal('none'), listen]).default('none'),
  /** Of a connector that has no certificate yet. */
  TRIVET_JOIN_TOKEN_FILE: z.string().min(1).optional(),
  TRIVET_WORKER_METRICS_LISTEN: listen.default({ host: '127.0.0.1', port: 8746 }),
  TRIVET_HOME: z.string().default('.trivet'),
  TRIVET_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace']).default('info'),
  COSI_ENDPOINT: unixEndpoint.optional(),
  TRIVET_COSI_DRIVER_NAME: z
    .string()
    .max(63)
    .regex(/^[a-z]([-a-z0-9]*[a-z0-9])?(\.[a-z]([-a-z0-9]*[a-z0-9])?)*$/, 'expected lower-case RFC 1035 labels')
    .default('cosi.trivet.dev'),
  TRIVET_COSI_BACKEND: z.string().default('rgw'),
  TRIVET_COSI_SOCKET_GROUP: z.string().optional(),
  TRIVET_COSI_GRANT_MISMATCH: z.enum(['already_exists', 'invalid_argument']).default('already_exists'),
  TRIVET_COSI_ACCESS_MODE_NUMBERS: z.enum(['auto', 'r1', 'r3']).default('auto'),
  TRIVET_RGW_ENDPOINT: z.url().optional(),
  TRIVET_RGW_PUBLIC_ENDPOINT: z.url().optional(),
  TRIVET_RGW_REGION: z.string().default('default'),
  TRIVET_RGW_ACCESS_KEY_FILE: z.string().optional(),
  TRIVET_RGW_SECRET_KEY_FILE: z.string().optional(),
  /** What drivers may call the backend `local` in array_ip, besides its name and the addresses of its portals. */
  TRIVET_CSP_ADDRESSES: z
    .string()
    .transform(text => text.split(',').map(address => address.trim()))
    .pipe(z.array(z.string().regex(/^([A-Za-z0-9._-]{1,253}|[0-9a-fA-F:.]{2,45})$/, 'expected a host name or address')))
    .optional(),
  /** The password that `migrate` gives to the user csp of the tenant default when it makes it. */
  TRIVET_CSP_PASSWORD_FILE: z.string().optional(),
  /** The password that `migrate` gives to admin@appliance, if the appliance has no administrator. */
  TRIVET_ADMIN_PASSWORD_FILE: z.string().optional(),
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
  /** The machine that a worker works on, as other hosts know it; its name when absent. */
  TRIVET_HOST: z
    .string()
    .regex(/^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/, 'expected letters, digits, dots, dashes and underscores')
    .optional(),
  TRIVET_LEASE_MS: duration(15_000),
  TRIVET_RECONCILE_MS: duration(2_000),
  /** Twice the cap of a tenant: one whose backend is deaf must leave places for the others. */
  TRIVET_WORKER_CONCURRENCY: wholeNumber('operations', 128),
  /** A place is a smallint (trivet.operation). */
  TRIVET_TENANT_CAP: wholeNumber('operations', 64, { max: 32_767 }),
  TRIVET_COSI_WAIT_MS: duration(25_000),
  TRIVET_AUDIT_MS: duration(3_600_000),
  /** How often Postgres, images and targets are compared. */
  TRIVET_BLOCK_AUDIT_MS: duration(300_000),
  TRIVET_INDEX_RETENTION_MS: duration(2_592_000_000, { min: 0, max: 31_536_000_000 }),
  /** How long the audit log is kept; 0: for ever. */
  TRIVET_AUDIT_LOG_DAYS: wholeNumber('days', 400, { min: 0, max: 36_500 }),
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
  TRIVET_ENDPOINT_CHECK_MS: duration(2_000),
  /** Where sockets of endpoints are made: a short path. run/endpoints in TRIVET_HOME when absent. */
  TRIVET_SOCKET_DIR: z.string().startsWith('/', 'expected an absolute path').optional(),
  TRIVET_SHUTDOWN_MS: duration(10_000),
  /** Where browsers reach the gateway. */
  TRIVET_PUBLIC_URL: publicUrl.optional(),
  /** OpenID Connect: whose logins the page takes besides passwords. */
  TRIVET_OIDC_ISSUER: oidcIssuer.optional(),
  TRIVET_OIDC_CLIENT_ID: z.string().min(1).optional(),
  TRIVET_OIDC_CLIENT_SECRET_FILE: z.string().min(1).optional(),
  /** Stands on the button. */
  TRIVET_OIDC_NAME: z.string().min(1).max(60).default('single sign-on'),
  TRIVET_OIDC_SCOPES: oidcScopes.default('openid profile'),
  /** Of a person whom nobody has linked with a user yet: the user's login name. Absent: administrators link. */
  TRIVET_OIDC_LOGIN_CLAIM: oidcLoginClaim.optional(),
  TRIVET_OIDC_LOGIN_TENANT: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'expected the name of a tenant')
    .default('default'),
  /** Of the command line, which asks this API with this token. */
  TRIVET_ADMIN_URL: z
    .string()
    .regex(/^https?:\/\/[^/\s]+(\/\S*)?$/, 'expected https://host:port')
    .optional(),
  TRIVET_ADMIN_TOKEN_FILE: z.string().optional(),
});
export type Config = z.output<typeof configSchema>;

type Env = Readonly<Record<string, string | undefined>>;

/** Addresses with a password in them may be given as NAME_FILE instead, which keeps them out of the environment. */
export const FROM_FILE = [
  'TRIVET_DATABASE_URL',
  'TRIVET_DATABASE_ENGINE_URL',
  'TRIVET_DATABASE_OWNER_URL',
  'TRIVET_REDIS_URL',
] as const satisfies (keyof Config)[];

/** Our variables, with the content of the files put in their place; problems are added to the list. */
function ourVariables(env: Env, problems: string[]): Record<string, string | undefined> {
  const ours = Object.fromEntries(
    Object.entries(env)
      .filter(([name, value]) => value !== undefined && /^TRIVET_|^COSI_ENDPOINT$/.test(name))
      .map(([name, value]) => [name, value === '' ? undefined : value]),
  );
  for (const name of FROM_FILE) {
    const variable = `${name}_FILE`;
    const path = ours[variable];
    delete ours[variable];
    if (path === undefined) continue;
    if (ours[name] !== undefined) problems.push(`${variable}: give either this or ${name}, not both`);
    else {
      try {
        ours[name] = readSecretFile(variable, path);
      } catch (error) {
        problems.push((error as Error).message);
      }
    }
  }
  return ours;
}

/**
 * Reads and checks the environment once. Throws ConfigError with a line for each variable: its name, what was expected.
 * `required` names what this process cannot do without.
 */
export function loadConfig<K extends keyof Config>(
  required: readonly K[] = [],
  // biome-ignore lint/style/noProcessEnv: the one place that reads it
  env: Env = process.env,
): Config & { [P in K]-?: NonNullable<Config[P]> } {
  const problems: string[] = [];
  const ours = ourVariables(env, problems);
  const parsed = configSchema.safeParse(ours);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      if (issue.code === 'unrecognized_keys') problems.push(...issue.keys.map(key => `${key}: unknown variable`));
      else problems.push(`${issue.path.join('.')}: ${issue.message}`);
    }
  }
  for (const name of required) {
    const given = ours[name] !== undefined || configSchema.shape[name].safeParse(undefined).data !== undefined;
    if (!given && !problems.some(problem => problem.startsWith(`${name}_FILE:`)))
      problems.push(`${name}: required, but not set`);
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return parsed.data as Config & { [P in K]-?: NonNullable<Config[P]> };
}

/** Of OpenTelemetry's specification, which has its own rules for them. */
export const openTelemetryVariables = (): Env =>
  // biome-ignore lint/style/noProcessEnv: the one place that reads it
  Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('OTEL_')));

/** Carried by every process of a home of `up`, so that what outlives its supervisor can be found. */
export const HOME_MARK = 'SUPERVISED_HOME';

/** For a process that outlives the one that starts it, and gets an environment of its own. */
export function homeMark(): Record<string, string> {
  // biome-ignore lint/style/noProcessEnv: the launcher's, and no setting of ours
  const home = process.env[HOME_MARK];
  return home === undefined ? {} : { [HOME_MARK]: home };
}

/**
 * libuv's pool runs file calls, DNS and the hashes of passwords. A file system that hangs keeps the threads of its calls for
 * good, up to a limit of its own (LANES in libs/backends/src/reflink/file-system-calls.ts): two may do so at a time and leave
 * more than a third of these.
 */
export const THREAD_POOL_SIZE = 48;

/** How many libuv has. */
// biome-ignore lint/style/noProcessEnv: libuv's, and no setting of ours
export const threadPoolSize = (): number => Number(process.env.UV_THREADPOOL_SIZE) || 4;

/** Call it before anything else: libuv reads it when its first work comes. A size that the caller gives stays. */
export function widenThreadPool(): void {
  // biome-ignore lint/style/noProcessEnv: libuv's, and no setting of ours
  process.env.UV_THREADPOOL_SIZE ??= String(THREAD_POOL_SIZE);
}

/** A secret given as a file; the message names the variable, never the content. */
export function readSecretFile(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new ConfigError(`${variable}: cannot read ${path}: ${(error as NodeJS.ErrnoException).code ?? 'error'}`);
  }
}

/** Begins each line that says why a process ended with EXIT_CONFIG; its log has others before it. */
export const CONFIG_LINE = 'trivet: configuration: ';

/** Ends the process the way a supervisor understands: one line for each problem, exit code 78. */
export function exitOnConfigError(error: unknown): never {
  if (!(error instanceof ConfigError)) throw error;
  for (const line of error.message.split('\n')) process.stderr.write(`${CONFIG_LINE}${line}\n`);
  process.exit(EXIT_CONFIG);
}
