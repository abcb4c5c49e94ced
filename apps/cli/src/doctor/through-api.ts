import { type BackendReply, backendRoutes, type EndpointReply, endpointRoutes } from '#admin/contract/backends';
import { workerRoutes } from '#admin/contract/operations';
import { type OverviewReply, overviewRoutes } from '#admin/contract/overview';
import { type TenantReply, tenantRoutes } from '#admin/contract/tenants';
import type { ApiClient } from '../api/api-client.js';
import { listed } from '../api/output.js';
import { type Finding, fail, findings, ok, warn } from './check.js';

const MOST = 1_000;
/** Tests of backends that do not answer take their time. */
const AT_ONCE = 4;
/** Whose backends may be shared; no list of tenants has it. */
const APPLIANCE = 'appliance';

/** What only a gateway knows: whether each backend and exporter is usable, which sockets are open, who works. */
export function checkThroughApi(api: ApiClient): Promise<Finding[]> {
  return findings('admin API', 'does its token still hold? the log of the gateway says more', async () => {
    const { items } = await listed<TenantReply, typeof tenantRoutes.list>(api, tenantRoutes.list, {}, MOST);
    const names = [APPLIANCE, ...items.map(({ name }) => name)];
    const found: Finding[] = [ok('admin API', `${api.url} answers`)];
    found.push(...(await checkWorkers(api)));
    found.push(operationFinding((await api.call(overviewRoutes.get)).reply.operations));
    for (const tenant of names) {
      const sent = { params: { tenant } };
      const backends = await listed<BackendReply, typeof backendRoutes.list>(api, backendRoutes.list, sent, MOST);
      const endpoints = await listed<EndpointReply, typeof endpointRoutes.list>(api, endpointRoutes.list, sent, MOST);
      for (let n = 0; n < backends.items.length; n += AT_ONCE) {
        const some = backends.items.slice(n, n + AT_ONCE);
        found.push(...(await Promise.all(some.map(backend => testBackend(api, tenant, backend)))).flat());
      }
      found.push(...endpoints.items.flatMap(endpoint => endpointFindings(tenant, endpoint)));
    }
    return found;
  });
}

function testBackend(api: ApiClient, tenant: string, { name, kind }: BackendReply): Promise<Finding[]> {
  const called = `backend ${tenant}/${name}`;
  return findings(called, 'see the log of the gateway', async () => {
    const { reply } = await api.call(backendRoutes.test, { params: { tenant, backend: name } });
    const bad = reply.checks.filter(check => !check.ok);
    if (reply.ok && bad.length === 0)
      return [ok(called, `${kind}: ${reply.checks.map(check => check.name).join(', ')}`)];
    return bad.map(check => fail(called, `${check.name}: ${check.detail}`, REMEDIES[kind] ?? 'see its own log'));
  });
}

const REMEDIES: Readonly<Record<string, string>> = {
  rgw: 'does it run, are its address and keys right? trivet backend test NAME shows each check',
  reflink: 'is the pool mounted, and tgt installed? trivet pool list; trivet backend test NAME shows each check',
};

export function endpointFindings(tenant: string, { name, state, open, problem, socket }: EndpointReply): Finding[] {
  const called = `socket ${tenant}/${name}`;
  if (state === 'suspended') return [warn(called, 'is suspended', `trivet endpoint resume ${name} --tenant ${tenant}`)];
  if (open) return [ok(called, socket)];
  return [fail(called, problem ?? 'is not open', 'see the log of the gateway; a gateway opens it again by itself')];
}

/** What waits for a backend is not stuck: the backend's own finding says what to do. */
export function operationFinding({ waiting, stuck, waitingForBackend }: OverviewReply['operations']): Finding {
  if (stuck > 0)
    return warn('operations', `${stuck} wait for a person, or fail again and again`, 'trivet operations list --stuck');
  if (waitingForBackend > 0)
    return warn(
      'operations',
      `${waitingForBackend} wait for a backend that does not answer`,
      'they go on by themselves once it does; trivet operations show ID has the reason and the next probe',
    );
  return ok('operations', `${waiting} wait, none is stuck`);
}

async function checkWorkers(api: ApiClient): Promise<Finding[]> {
  const [workers, queues] = await Promise.all([api.call(workerRoutes.workers), api.call(workerRoutes.queues)]);
  const { items } = workers.reply;
  const up = items.filter(({ state }) => state === 'up');
  const found: Finding[] = items
    .filter(({ state }) => state === 'lost')
    .map(({ host, pid, seenAt }) =>
      warn('worker', `${host}, pid ${pid}: silent since ${seenAt}`, 'start it again; its work was taken over'),
    );
  if (up.length === 0) found.push(fail('worker', 'none is up', 'start one: accepted work waits'));
  else found.push(ok('worker', `${up.length} up`));
  for (const { class: name, paused, reason } of queues.reply.items)
    if (paused)
      found.push(warn(`queue ${name}`, `is paused: ${reason ?? 'no reason given'}`, `trivet queue resume ${name}`));
  return found;
}
