/** Of gateway and worker: database, queue, key, doors, and how work is done. */
import { z } from 'zod';
import { duration, listen, postgresUrl, wholeNumber } from '#platform/config/setting-forms';

export const processSettings = {
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
  /** Where connectors of clusters come in, over mutual TLS. */
  TRIVET_CLUSTER_LISTEN: z.union([z.literal('none'), listen]).default('none'),
  TRIVET_WORKER_METRICS_LISTEN: listen.default({ host: '127.0.0.1', port: 8746 }),
  TRIVET_HOME: z.string().default('.trivet'),
  TRIVET_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace']).default('info'),
  /** The password that `migrate` gives to admin@appliance, if the appliance has no administrator. */
  TRIVET_ADMIN_PASSWORD_FILE: z.string().optional(),
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
  TRIVET_AUDIT_MS: duration(3_600_000),
  /** How long the audit log is kept; 0: for ever. */
  TRIVET_AUDIT_LOG_DAYS: wholeNumber('days', 400, { min: 0, max: 36_500 }),
  /** How long it is kept what tenants and volumes used. */
  TRIVET_USAGE_DAYS: wholeNumber('days', 400, { min: 32, max: 3_650 }),
  TRIVET_ENDPOINT_CHECK_MS: duration(2_000),
  /** Where sockets of endpoints are made: a short path. run/endpoints in TRIVET_HOME when absent. */
  TRIVET_SOCKET_DIR: z.string().startsWith('/', 'expected an absolute path').optional(),
  TRIVET_SHUTDOWN_MS: duration(10_000),
  /** Of the command line, which asks this API with this token. */
  TRIVET_ADMIN_URL: z
    .string()
    .regex(/^https?:\/\/[^/\s]+(\/\S*)?$/, 'expected https://host:port')
    .optional(),
  TRIVET_ADMIN_TOKEN_FILE: z.string().optional(),
};
