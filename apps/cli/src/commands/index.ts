import type { Command } from 'commander';

export interface CommandModule {
  register(program: Command): void;
}

/** One file a command; loaded only when it is asked for, or for the list of all. */
export const COMMANDS: Readonly<Record<string, () => Promise<CommandModule>>> = {
  up: () => import('./up.js'),
  down: () => import('./down.js'),
  status: () => import('./status.js'),
  doctor: () => import('./doctor.js'),
  demo: () => import('./demo.js'),
  bucket: () => import('./bucket.js'),
  volume: () => import('./volume.js'),
  host: () => import('./host.js'),
  pool: () => import('./pool.js'),
  changes: () => import('./changes.js'),
  backup: () => import('./backup.js'),
  restore: () => import('./restore.js'),
  prune: () => import('./prune.js'),
  user: () => import('./user.js'),
  protection: () => import('./protection.js'),
  policy: () => import('./policy.js'),
  operations: () => import('./operations.js'),
  operation: () => import('./operation.js'),
  tenant: () => import('./tenant.js'),
  backend: () => import('./backend.js'),
  endpoint: () => import('./endpoint.js'),
  token: () => import('./token.js'),
  queue: () => import('./queue.js'),
  audit: () => import('./audit.js'),
  openapi: () => import('./openapi.js'),
  schema: () => import('./schema.js'),
  migrate: () => import('./migrate.js'),
  rewrap: () => import('./rewrap.js'),
  bench: () => import('./bench.js'),
  test: () => import('./test.js'),
};
