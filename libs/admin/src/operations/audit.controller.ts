import { Readable } from 'node:stream';
import { Controller, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { auditRoutes } from '#admin/contract/overview';
import { shownAudit } from '#admin/events/audit-view';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { answerPage } from '#admin/requests/paging';
import { scopeOf } from '#admin/requests/scope';
import { Serves } from '#admin/requests/serves';
import { type AuditFilter, AuditReader } from '#tenancy/audit-log/audit-reader';
import { Tenants } from '#tenancy/tenants/tenants';

type Query = AdminCall<typeof auditRoutes.export>['query'];

@Controller()
export class AuditController {
  constructor(
    private readonly tenants: Tenants,
    private readonly audit: AuditReader,
  ) {}

  @Serves(auditRoutes.list)
  async list(@Call() call: AdminCall<typeof auditRoutes.list>) {
    const scope = await this.scope(call, call.query);
    return answerPage(call, request => this.audit.list(scope, filterOf(call.query), request), shownAudit);
  }

  @Serves(auditRoutes.export)
  async export(
    @Call() call: AdminCall<typeof auditRoutes.export>,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Readable> {
    const scope = await this.scope(call, call.query);
    reply.header('content-type', 'application/x-ndjson; charset=utf-8');
    reply.header('content-disposition', 'attachment; filename="audit.ndjson"');
    return Readable.from(lines(this.audit, scope, filterOf(call.query)), { objectMode: false });
  }

  /** For who sees all, a tenant that is gone has its entries still. */
  private scope(call: AdminCall, { tenant }: Query): Promise<{ tenantId?: string }> {
    return call.principal.appliance ? Promise.resolve({}) : scopeOf(call, this.tenants, tenant);
  }
}

/** What reads them asks for the next portion. */
async function* lines(audit: AuditReader, scope: { tenantId?: string }, filter: AuditFilter): AsyncGenerator<string> {
  for await (const rows of audit.export(scope, filter))
    yield rows.map(row => `${JSON.stringify(shownAudit(row))}\n`).join('');
}

const filterOf = ({ tenant, actor, action, subject, since, until }: Query): AuditFilter => ({
  ...(tenant === undefined ? {} : { tenant }),
  ...(actor === undefined ? {} : { actor }),
  ...(action === undefined ? {} : { action }),
  ...(subject === undefined ? {} : { subject }),
  ...(since === undefined ? {} : { since: new Date(since) }),
  ...(until === undefined ? {} : { until: new Date(until) }),
});
