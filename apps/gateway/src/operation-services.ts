import type { AdminOptions } from '#admin/admin-options';
import { EventHub } from '#admin/events/event-hub';
import { EventSource } from '#admin/events/event-source';
import { Overview } from '#admin/overview/overview';
import { changeHandlers } from '#changes/change-handlers';
import { OperationDesk } from '#operations/operation-desk';
import { OperationKinds } from '#operations/operation-kinds';
import { WorkerDirectory } from '#operations/worker-directory';
import { VERSION } from '#platform/boot';
import { blockHandlers } from '#storage/block-handlers';
import { storageHandlers } from '#storage/storage';
import { AuditReader } from '#tenancy/audit-reader';
import { Names } from '#tenancy/names';
import type { GatewayParts } from './gateway-parts.js';
import { certificateOf, legHealth } from './leg-health.js';

type OperationServices = Pick<AdminOptions, 'desk' | 'names' | 'workers' | 'audit' | 'events' | 'overview'>;

/** What administrators see of the work of the appliance, and do about it. */
export function operationServices({
  config,
  database,
  secrets,
  operations,
  objects,
  blocks,
  doors,
}: GatewayParts): OperationServices {
  // Here they only say what their steps are called, and what becomes of a resource without asking a backend.
  const kinds = new OperationKinds([
    ...storageHandlers(objects, secrets),
    ...blockHandlers(blocks, secrets, { recycleMs: config.TRIVET_RECYCLE_MS }),
    ...changeHandlers(database, blocks),
  ]);
  const desk = new OperationDesk(database, kinds, operations);
  const names = new Names(database);
  const workers = new WorkerDirectory(database);
  const audit = new AuditReader(database);
  return {
    desk,
    names,
    workers,
    audit,
    events: new EventHub(new EventSource(database, audit, names)),
    overview: new Overview({
      database,
      workers,
      names,
      version: VERSION,
      legs: tenantId => legHealth(config, doors, tenantId),
      certificate: () => certificateOf(config),
    }),
  };
}
