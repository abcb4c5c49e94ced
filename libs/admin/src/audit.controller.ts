import { Readable } from 'node:stream';
import { Controller, Inject, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { shownAudit } from '#admin/audit-view';
import { auditRoutes } from '#admin/contract/overview';
import { answerPage } from '#admin/paging';
import { scopeOf } from '#admin/scope';
import { Serves } from '#admin/serves';
import type { AuditFilter, AuditReader } from '#tenancy/audit-reader';

type Query = AdminCall<typeof auditRoutes.export>['query'];

@Controller()
export class AuditController {
  constructor(@Inject(ADMIN_OPTIONS) private readonly options: AdminOptions) {}

  @Serves(auditRoutes.list)
  async list(@Call() call: AdminCall<typeof auditRoutes.list>) {
    const scope = await this.scope(call, call.query);
    return answerPage(call, request => this.options.audit.list(scope, filterOf(call.query), request), shownAudit);
  }

  @Serves(auditRoutes.export)
  async export(
    @Call() call: AdminCall<typeof auditRoutes.export>,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Readable> {
    const scope = await this.scope(call, call.query);
    reply.header('content-type', 'application/x-ndjson; charset=utf-8');
    reply.header('content-disposition', 'attachment; filename="audit.ndjson"');
    return Readable.from(lines(this.options.audit, scope, filterOf(call.query)), { objectMode: false });
  }

  /** For who sees all, a tenant that is gone has its entries still. */
  private scope(call: AdminCall, { tenant }: Query): Promise<{ tenantId?: string }> {
    return call.principal.appliance ? Promise.resolve({}) : scopeOf(call, this.options, tenant);
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
