import { Controller } from '@nestjs/common';
import type { z } from 'zod';
import {
  type OperationDetailReply,
  type OperationReply,
  type operationEvent,
  operationRoutes,
} from '#admin/contract/operations';
import { eventId } from '#admin/events/event-id';
import { Refusal } from '#admin/problems/problems';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { operationFilter } from '#admin/requests/operation-filter';
import { answerPage } from '#admin/requests/paging';
import { scopeOf } from '#admin/requests/scope';
import { Serves } from '#admin/requests/serves';
import { OperationAdmin } from '#operations/administration/operation-admin';
import type { OperationAction, OperationDetail, OperationEventRow } from '#operations/administration/operation-detail';
import type { OperationRow } from '#operations/administration/operation-list';
import { WorkerDirectory } from '#operations/workers/worker-directory';
import { Database } from '#platform/database/database';
import type { PageRequest } from '#platform/database/keyset';
import { relatedTo } from '#storage/block/related-objects';
import { NO_BACKEND } from '#storage/bulk/bulk-actions';
import { countItems, listItems } from '#storage/bulk/bulk-items';
import { runBulk } from '#storage/bulk/run-bulk';
import { auditWrite } from '#tenancy/audit-log/audit-log';
import { Names } from '#tenancy/names';
import { Tenants } from '#tenancy/tenants/tenants';

type Act = typeof operationRoutes.retry;

/** Of a bulk, as many as a person reads before looking at all of them. */
const FAILURES = 20;

/** Of the caller's tenant; for the appliance's administrators of all. */
@Controller()
export class OperationsController {
  constructor(
    private readonly tenants: Tenants,
    private readonly operationAdmin: OperationAdmin,
    private readonly names: Names,
    private readonly workers: WorkerDirectory,
    private readonly database: Database,
  ) {}

  @Serves(operationRoutes.list)
  async list(@Call() call: AdminCall<typeof operationRoutes.list>) {
    const { operationAdmin, names } = this;
    const { sort, tenant, related, ...asked } = call.query;
    const scope = await scopeOf(call, this.tenants, tenant);
    const filter = await operationFilter(asked, names, scope.tenantId);
    if (related !== undefined) {
      if (scope.tenantId === undefined) {
        const message = 'related wants the tenant whose object that is';
        throw new Refusal('invalid_argument', `/query/tenant: ${message}`, [{ pointer: '/query/tenant', message }]);
      }
      filter.resourceIds = await relatedTo(this.database, scope.tenantId, related);
    }
    if (scope.tenantId === undefined) filter.everyTenant = await names.everyTenant();
    const read = async (request: PageRequest) => {
      const { rows, next } = await operationAdmin.list(scope, filter, request, { descending: sort === '-createdAt' });
      return { rows: await this.named(rows), next };
    };
    return answerPage(call, read, shown);
  }

  @Serves(operationRoutes.get)
  async get(@Call() call: AdminCall<typeof operationRoutes.get>): Promise<OperationDetailReply> {
    const { operation: id } = call.params;
    const found = await this.operationAdmin.find(await scopeOf(call, this.tenants), id);
    if (!found) throw new Refusal('not_found', `there is no operation ${id}`);
    return this.detail(found);
  }

  @Serves(operationRoutes.retry)
  retry(@Call() call: AdminCall<Act>): Promise<OperationDetailReply> {
    return this.act('retry', call);
  }

  @Serves(operationRoutes.cancel)
  cancel(@Call() call: AdminCall<Act>): Promise<OperationDetailReply> {
    return this.act('cancel', call);
  }

  @Serves(operationRoutes.resolve)
  resolve(@Call() call: AdminCall<Act>): Promise<OperationDetailReply> {
    return this.act('resolve', call);
  }

  @Serves(operationRoutes.release)
  release(@Call() call: AdminCall<Act>): Promise<OperationDetailReply> {
    return this.act('release', call);
  }

  private async act(action: OperationAction, call: AdminCall<Act>): Promise<OperationDetailReply> {
    const { operationAdmin, names } = this;
    const { reason } = call.body;
    const { actor } = call;
    const scope = await scopeOf(call, this.tenants);
    const before = await operationAdmin.find(scope, call.params.operation);
    const tenantName = before ? (await names.ofTenants([before.tenantId])).get(before.tenantId)! : '';
    const now = await operationAdmin.act(action, scope, call.params.operation, {
      by: call.actorName,
      ...(reason === undefined ? {} : { reason }),
      note: ({ tenantId, id, kind, state, resourceName }) => [
        auditWrite(actor, {
          tenantId,
          tenantName,
          action: `operation.${action}`,
          subject: { kind: 'operation', id, name: `${kind} ${resourceName}` },
          before: { state },
          ...(reason === undefined ? {} : { reason }),
          operationId: id,
        }),
      ],
    });
    return this.detail(now);
  }

  private async detail(found: OperationDetail): Promise<OperationDetailReply> {
    const [row] = await this.named([found]);
    const { leaseOwner, leaseUntil, fence } = found;
    // As people know it; one that is forgotten by now is called by its id.
    const workers = new Map(
      (await this.workers.list()).map(({ id, host, pid }) => [id, `${host}, process ${pid}`] as const),
    );
    const named = (worker: string): string => workers.get(worker) ?? worker;
    return {
      ...shown(row!),
      events: found.events.map(event => shownEvent(event, named)),
      steps: found.steps,
      lease:
        leaseOwner === null || leaseUntil === null
          ? null
          : { worker: named(leaseOwner), until: leaseUntil.toISOString(), fence },
      dispatch: { number: found.dispatchNo, at: found.dispatchedAt?.toISOString() ?? null },
      waitsFor: found.waitsFor,
      items: found.kind === runBulk.kind ? await this.itemsOf(found) : null,
      request: requestOf(found),
      result: found.result,
      traceparent: found.traceparent,
      advice: found.advice,
      actions: found.actions,
    };
  }

  private itemsOf({ tenantId, id: bulkId }: OperationDetail): Promise<OperationDetailReply['items']> {
    return this.database.withTenant(tenantId, async tx => {
      const counts = await countItems(tx, tenantId, bulkId);
      const { rows } = await listItems(tx, { tenantId, bulkId }, 'failed', { limit: FAILURES });
      const failures = rows.map(({ subjectId: id, name, operationId: operation, error }) => ({
        id,
        name,
        operation,
        message: error?.message ?? 'it was cancelled',
      }));
      return { ...counts, failures };
    });
  }

  private async named<Row extends OperationRow>(rows: readonly Row[]): Promise<NamedRow[]> {
    const { names } = this;
    const [tenants, backends] = await Promise.all([
      names.ofTenants(rows.map(({ tenantId }) => tenantId)),
      names.ofBackends(rows.map(({ backendId }) => backendId)),
    ]);
    return rows.map(row => ({
      ...row,
      tenant: tenants.get(row.tenantId)!,
      backend: row.backendId === NO_BACKEND ? '' : backends.get(row.backendId) || row.backendId,
    }));
  }
}

type NamedRow = OperationRow & { tenant: string; backend: string };

const shown = (row: NamedRow): OperationReply => ({
  id: row.id,
  tenant: row.tenant,
  kind: row.kind,
  class: row.class,
  state: row.state,
  resource: { kind: row.resourceKind, id: row.resourceId, name: row.resourceName },
  backend: row.backend,
  actor: row.actor,
  step: row.step,
  attempt: row.attempt,
  crashes: row.crashes,
  error: row.error && { kind: row.error.kind, message: row.error.message, retry: row.error.retry },
  cancelRequested: row.cancelRequested,
  createdAt: row.createdAt.toISOString(),
  startedAt: row.startedAt?.toISOString() ?? null,
  finishedAt: row.finishedAt?.toISOString() ?? null,
  nextRunAt: (!row.waitsForBackend && row.nextRunAt?.toISOString()) || null,
  waitsForBackend: row.waitsForBackend && {
    reason: row.waitsForBackend.reason,
    nextProbeAt: new Date(row.waitsForBackend.nextProbeAt).toISOString(),
  },
  waitsForHost: row.waitsForHost,
});

const shownEvent = (
  { xid, seq, at, type, detail }: OperationEventRow,
  named: (worker: string) => string,
): z.output<typeof operationEvent> => ({
  id: eventId({ xid, seq, source: 'o', at }),
  at: at.toISOString(),
  type,
  detail: typeof detail.worker === 'string' ? { ...detail, worker: named(detail.worker) } : detail,
});

/** Of a bulk without who asked for it: that is `actor`, and from where the audit log says. */
function requestOf({ kind, request }: OperationDetail): Record<string, unknown> {
  if (kind !== runBulk.kind) return request as Record<string, unknown>;
  const { by: _, ...asked } = request as Record<string, unknown>;
  return asked;
}
