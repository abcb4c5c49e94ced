import { type BackendReply, backendRoutes } from '#admin/contract/backends';
import { type EndpointReply, endpointRoutes } from '#admin/contract/endpoints';
import { type TaskReply, workerRoutes } from '#admin/contract/operations';
import { type OverviewReply, overviewRoutes } from '#admin/contract/overview';
import { type StorageHostReply, storageHostRoutes } from '#admin/contract/storage-hosts';
import { tenantRoutes } from '#admin/contract/tenants';
import type { ApiClient } from '../api/api-client.js';
import { listed } from '../api/output.js';
import { humanBytes } from '../human-bytes.js';
import { type Finding, fail, findings, ok, warn } from './check.js';

const MOST = 1_000;
/** Tests of backends that do not answer take their time. */
const AT_ONCE = 4;
/** Whose backends may be shared; no list of tenants has it. */
const APPLIANCE = 'appliance';

/** What only a gateway knows: whether each backend and exporter is usable, which sockets are open, who works. */
export function checkThroughApi(api: ApiClient): Promise<Finding[]> {
  return findings('admin API', 'does its token still hold? the log of the gateway says more', async () => {
    const { items } = await listed(api, tenantRoutes.list, {}, MOST);
    const names = [APPLIANCE, ...items.map(({ name }) => name)];
    const found: Finding[] = [ok('admin API', `${api.url} answers`)];
    found.push(...(await checkWorkers(api)));
    const { operations, slowCalls } = (await api.call(overviewRoutes.get)).reply;
    found.push(operationFinding(operations), ...slowCallFindings(slowCalls));
    for (const tenant of names) {
      const sent = { params: { tenant } };
      const backends = await listed(api, backendRoutes.list, sent, MOST);
      const endpoints = await listed(api, endpointRoutes.list, sent, MOST);
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
  rbd: 'do its monitors run, has its user key and caps, are librbd1 and tgt-rbd installed? trivet backend test NAME shows each check',
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
    return warn('operations', `${stuck} wait for a person, or fail again and again`, 'trivet operation list --stuck');
  if (waitingForBackend > 0)
    return warn(
      'operations',
      `${waitingForBackend} wait for a backend that does not answer`,
      'they go on by themselves once it does; trivet operation show ID has the reason and the next probe',
    );
  return ok('operations', `${waiting} wait, none is stuck`);
}

/** One for each call that operations of a backend wait for. */
export const slowCallFindings = (calls: OverviewReply['slowCalls']): Finding[] =>
  calls.map(({ tenant, backend, call, operations, oldest: { operation, what, since } }) =>
    warn(
      'slow call',
      `${call} of backend ${tenant}/${backend}: ${operations === 1 ? what : `${operations} operations wait, first ${what}`}, no answer since ${since}`,
      `large images take their time; are pool and backend well, and nothing moves: trivet operation release ${operation} --reason TEXT`,
    ),
  );

/** Of the workers that are up, and of the gateway that was asked. */
export function taskFindings(tasks: readonly TaskReply[], up: readonly { id: string; pid: number }[]): Finding[] {
  const late = tasks.filter(({ state }) => state === 'late');
  if (late.length === 0)
    return [ok('periodic tasks', `none of ${new Set(tasks.map(({ name }) => name)).size} is late`)];
  return late.map(({ name, scope, workerId, lastSuccessAt, error }) => {
    const pid = up.find(({ id }) => id === workerId)?.pid;
    const where = pid === undefined ? `${name}${scope === 'gateway' ? ' of the gateway' : ''}` : `${name}, pid ${pid}`;
    const since = lastSuccessAt === null ? 'has never succeeded' : `no success since ${lastSuccessAt}`;
    return warn(
      'periodic task',
      `${where}: ${since}, ${error ?? 'a run does not end'}`,
      'mend what it says, the log of the process has more; one in which a run does not end may be restarted',
    );
  });
}

function livingHost({
  name,
  release,
  homeOf,
  exporters,
  clusters,
  memoryFree,
  draining,
  absent,
}: StorageHostReply): Finding[] {
  const reaches = [...exporters, ...clusters.map(cluster => `the cluster at ${cluster}`)].join(', ') || 'no exporter';
  const found = `up with release ${release}, has ${homeOf} pools, ${reaches}, ${humanBytes(memoryFree)} of memory free`;
  const lost = absent.map(pool =>
    fail(
      `pool ${pool.name}`,
      `storage host ${name} is its home, and without its file system at ${pool.path}`,
      `mount it; if its disk is at another storage host now: trivet pool move ${pool.name} --to HOST`,
    ),
  );
  if (!draining) return [ok(`storage host ${name}`, found), ...lost];
  const why = `is drained since ${draining.since} by ${draining.by}${draining.reason ? `: ${draining.reason}` : ''}`;
  const next =
    homeOf > 0
      ? `trivet storage-host show ${name} says what to do about its pools`
      : 'it has no pool any more: it may be switched off';
  return [
    warn(`storage host ${name}`, `${found}; ${why}`, `${next}; trivet storage-host undrain ${name} takes it back`),
    ...lost,
  ];
}

/** Of one host alone its workers say all there is to say. */
export function storageHostFindings(hosts: readonly StorageHostReply[]): Finding[] {
  const found: Finding[] = [];
  if (hosts.length > 1 || hosts.some(({ draining }) => draining !== null))
    for (const host of hosts) {
      const { name, state, homeOf, waiting, seenAt } = host;
      if (state === 'up') found.push(...livingHost(host));
      else if (homeOf > 0)
        found.push(
          fail(
            `storage host ${name}`,
            `silent since ${seenAt}: ${homeOf} pools cannot be reached, ${waiting} operations wait for it`,
            'start its worker again; once it is off and its disks are at another machine: trivet pool move, or the same TRIVET_HOST there',
          ),
        );
      else
        found.push(
          warn(`storage host ${name}`, `silent since ${seenAt}`, 'it has no pool: it is forgotten after a day'),
        );
    }
  for (const { name, foreign } of hosts)
    for (const pool of foreign)
      found.push(
        fail(
          `pool ${pool.name}`,
          `storage host ${name} has its file system at ${pool.path}, and ${pool.home} is its home`,
          `unmount it on one of the two; if its disk is to stay there: trivet pool move ${pool.name} --to ${name}`,
        ),
      );
  return found;
}

async function checkWorkers(api: ApiClient): Promise<Finding[]> {
  const [workers, tasks, queues, hosts] = await Promise.all([
    api.call(workerRoutes.workers),
    api.call(workerRoutes.tasks),
    api.call(workerRoutes.queues),
    api.call(storageHostRoutes.list),
  ]);
  const { items } = workers.reply;
  const up = items.filter(({ state }) => state === 'up');
  const found: Finding[] = items
    .filter(({ state }) => state === 'lost')
    .map(({ host, pid, seenAt }) =>
      warn('worker', `${host}, pid ${pid}: silent since ${seenAt}`, 'start it again; its work was taken over'),
    );
  // Without a worker its finding says all there is to say of what workers do.
  const told = up.length === 0 ? tasks.reply.items.filter(({ scope }) => scope === 'gateway') : tasks.reply.items;
  found.push(
    up.length === 0 ? fail('worker', 'none is up', 'start one: accepted work waits') : ok('worker', `${up.length} up`),
  );
  found.push(...taskFindings(told, up), ...storageHostFindings(hosts.reply.items));
  for (const { class: name, paused, reason } of queues.reply.items)
    if (paused)
      found.push(warn(`queue ${name}`, `is paused: ${reason ?? 'no reason given'}`, `trivet queue resume ${name}`));
  return found;
}
