import { Controller } from '@nestjs/common';
import { type FindingReply, type PoolReply, poolRoutes } from '#admin/contract/pools';
import type { ReplyOf } from '#admin/contract/route';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Serves } from '#admin/requests/serves';
import { Database } from '#platform/database/database';
import { BackendRegistrations } from '#storage/backends/backend-registrations';
import { movePool } from '#storage/backends/pool-move';
import { reportFindings } from '#storage/block/drift/finding-report';
import { type PoolReport, reportBackends } from '#storage/block/pools/pool-report';

const MOST_FINDINGS = 1_000;

@Controller()
export class PoolsController {
  constructor(
    private readonly database: Database,
    private readonly backends: BackendRegistrations,
  ) {}

  @Serves(poolRoutes.list)
  async list(): Promise<{ items: PoolReply[] }> {
    const backends = await reportBackends(this.database);
    const items = backends.flatMap(({ tenant, name, pools }) =>
      pools.map(pool => ({ tenant, backend: name, ...shown(pool) })),
    );
    return { items };
  }

  @Serves(poolRoutes.move)
  async move(@Call() call: AdminCall<typeof poolRoutes.move>): Promise<ReplyOf<typeof poolRoutes.move>> {
    const { actor, tenant, params, body } = call;
    const { backend, pool } = params;
    const { to } = body;
    const moved = await movePool(this.database, this.backends.kinds, actor, tenant, { ...body, backend, pool });
    // A pool that is there already is no change.
    call.audited = true;
    return { tenant: tenant.name, backend, pool, to, ...moved };
  }

  @Serves(poolRoutes.findings)
  async findings(@Call() call: AdminCall<typeof poolRoutes.findings>): Promise<{ items: FindingReply[] }> {
    const found = await reportFindings(this.database, call.tenant.id, MOST_FINDINGS, call.query.backend);
    const items = found.map(({ firstSeen, lastSeen, ...rest }) => ({
      ...rest,
      firstSeen: firstSeen.toISOString(),
      lastSeen: lastSeen.toISOString(),
    }));
    return { items };
  }
}

const shown = (pool: PoolReport): Omit<PoolReply, 'tenant' | 'backend'> => ({
  name: pool.name,
  state: pool.state,
  reason: pool.reason,
  clone: pool.clone,
  portals: pool.portals,
  total: pool.totalBytes,
  used: pool.usedBytes,
  promised: pool.promisedBytes,
  thinRatio: pool.thinRatio,
  daysToFull: pool.daysToFull,
  volumes: pool.volumes,
  checkedAt: pool.checkedAt.toISOString(),
});
