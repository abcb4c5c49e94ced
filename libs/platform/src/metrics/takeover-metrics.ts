import { Counter } from 'prom-client';
import { registry } from '#platform/metrics/metrics';

/** Why a pool of a cluster has another storage host than before. */
const TAKEOVERS = ['silent', 'cluster', 'link', 'drained', 'handed_over', 'renamed'] as const;
export type Takeover = (typeof TAKEOVERS)[number];

/** Counted by who takes. Pools have no label: the audit log has each takeover with pool and hosts. */
export const takeoversTotal = new Counter({
  name: 'trivet_pool_takeovers_total',
  help: 'Pools of clusters that this worker’s storage host took over, by why the one before lost them.',
  labelNames: ['reason'] as const,
  registers: [registry],
});
for (const reason of TAKEOVERS) takeoversTotal.inc({ reason }, 0);
