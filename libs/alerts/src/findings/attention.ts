import { MARKS, RULES, type RuleName, type Severity } from '#alerts/rules';
import type { Load } from '#operations/administration/operation-load';
import type { StuckCause, StuckCauses } from '#operations/administration/stuck-causes';
import type { QueueView, StorageHostView, TaskView, WorkerView } from '#operations/workers/worker-directory';
import type { Conditions } from '#storage/backends/condition-report';
import { POOL_MARKS } from '#storage/block/pools/pool-marks';
import { silenceOf } from '#storage/shared/backend-health';

/** Something that a person has to look at. */
export interface Finding {
  rule: RuleName;
  /** What it is about, the same as long as it lasts: with the rule it says which finding it is. */
  object: string;
  severity: Severity;
  /** What is wrong, what follows from it, and what to do. */
  what: string;
  means: string;
  todo: string;
  /** Path of the dashboard. */
  link: string | null;
  /** Of several operations that one cause holds up, the one that waits longest. */
  oldest: { operation: string; what: string; at: string } | null;
}
export type Item = Omit<Finding, 'oldest' | 'severity'> & Partial<Pick<Finding, 'oldest'>>;

/** How a gateway serves an interface. */
export interface Leg {
  name: 'cosi' | 'csp' | 'cbt';
  health: 'ok' | 'degraded' | 'down' | 'absent';
  detail: string;
}

/** What a gateway alone knows. */
export interface Doors {
  /** host:port; '' for the one that answers. */
  gateway: string;
  /** As they are served, whatever becomes of the work behind them. */
  legs: readonly Leg[];
  /** Of TLS, when it serves it: until when it is good. */
  certificate: { path: string; until: Date } | undefined;
}

export interface SlowCall {
  tenant: string;
  backend: string;
  call: string;
  operations: number;
  oldest: { operation: string; what: string; since: string };
}

export interface Seen {
  /** The appliance's administrators see what is of no tenant, too. */
  appliance: boolean;
  doors: readonly Doors[];
  conditions: Conditions;
  load: Load;
  /** Why operations are stuck, the largest first. */
  stuck: { causes: readonly (StuckCause & { tenant: string; backend: string })[]; more: StuckCauses['more'] };
  slowCalls: readonly SlowCall[];
  workers: readonly WorkerView[];
  storageHosts: readonly StorageHostView[];
  tasks: readonly TaskView[];
  queues: readonly QueueView[];
}

const CERTIFICATE_MS = MARKS.certificateDays * 86_400_000;

const LIST: Readonly<Record<'volume' | 'snapshot' | 'bucket', string>> = {
  volume: 'volumes',
  snapshot: 'snapshots',
  bucket: 'buckets',
};

/**
 * What a person has to look at, the most severe first. Each says what is wrong, what follows from it, and what to do; those
 * that have the last two in common say them alike, so that a page can say them once.
 */
export function attentionFor(seen: Seen): Finding[] {
  const all = [
    ...ofDoors(seen),
    ...ofWorkers(seen),
    ...ofStorageHosts(seen),
    ...ofBackends(seen.conditions),
    ...ofOperations(seen),
    ...ofSlowCalls(seen),
    ...ofResources(seen.conditions),
  ].map(asFinding);
  return bySeverity(all);
}

export const asFinding = (item: Item): Finding => ({ oldest: null, severity: RULES[item.rule].severity, ...item });

export const bySeverity = (all: readonly Finding[]): Finding[] => [
  ...all.filter(item => item.severity === 'error'),
  ...all.filter(item => item.severity === 'warning'),
];

const ofDoors = ({ appliance, doors }: Seen): Item[] => (appliance ? doors.flatMap(ofGateway) : []);

function ofGateway({ gateway, legs, certificate }: Doors): Item[] {
  const items: Item[] = legs
    .filter(({ health }) => health === 'down' || health === 'degraded')
    .map(({ name, health, detail }) => ({
      rule: health === 'down' ? 'interface_down' : 'interface_degraded',
      object: `${gateway}/${name}`,
      what: `${name.toUpperCase()} is ${health === 'down' ? 'not served' : 'served in part'}${gateway && ` by the gateway ${gateway}`}: ${detail}`,
      means: 'Callers there get no answer; what was accepted before goes on.',
      todo: 'See the endpoints for the reason; run `trivet doctor` on the host of this gateway, and look at its log.',
      link: null,
    }));
  const left = certificate ? certificate.until.getTime() - Date.now() : Number.POSITIVE_INFINITY;
  if (certificate && left < CERTIFICATE_MS)
    items.push({
      rule: left < 0 ? 'certificate_ended' : 'certificate_ending',
      object: `${gateway}/${certificate.path}`,
      what: `The TLS certificate${gateway && ` of the gateway ${gateway}`} ${left < 0 ? 'has expired' : 'expires'} on ${certificate.until.toISOString()}.`,
      means: 'After that, clients that check it refuse to connect.',
      todo: `Replace ${certificate.path}; the gateway takes it within half a minute.`,
      link: null,
    });
  return items;
}

function ofWorkers({ appliance, workers, tasks, queues, load }: Seen): Item[] {
  const items: Item[] = [];
  const up = workers.filter(({ state }) => state === 'up').length;
  if (up === 0)
    items.push({
      rule: 'worker_none',
      object: '',
      what: 'No worker is up.',
      means: `Nothing that was accepted is carried out: ${waiting(load.waiting)}. None is lost.`,
      todo: appliance ? 'Start a worker; `trivet status` says what became of it.' : 'Tell whoever runs the appliance.',
      link: appliance ? '/workers' : null,
    });
  if (!appliance) return items;
  for (const { host, pid, seenAt } of workers.filter(({ state }) => state === 'lost'))
    items.push({
      rule: 'worker_lost',
      object: `${host}/${pid}`,
      what: `The worker ${host}, process ${pid}, has said nothing since ${seenAt.toISOString()}.`,
      means: 'It has died, or its machine stands still. Others have taken over what it had.',
      todo: 'Look at its log. A worker that is not coming back is forgotten after a day.',
      link: '/workers',
    });
  for (const { name, scope, workerId, lastSuccessAt, error } of tasks.filter(({ state }) => state === 'late')) {
    const worker = workers.find(({ id }) => id === workerId);
    items.push({
      rule: 'task_late',
      object: worker ? `${worker.host}/${name}` : name,
      what: `${name}${worker ? ` of the worker ${worker.host}, process ${worker.pid},` : scope === 'gateway' ? ' of this gateway' : ''} has not succeeded since ${lastSuccessAt?.toISOString() ?? 'the start'}: ${error ?? 'a run does not end'}.`,
      means:
        'This is done without being asked, again and again; until it succeeds, what it looks after waits. All else goes on.',
      todo: 'Mend what it says; the log of the process has more. One in which it does not end may be restarted at any time.',
      link: '/workers',
    });
  }
  for (const queue of queues.filter(({ paused }) => paused))
    items.push({
      rule: 'queue_paused',
      object: queue.class,
      what: `The class ${queue.class} is paused by ${queue.changedBy ?? 'somebody'}${queue.reason ? `: ${queue.reason}` : ''}.`,
      means: `${waiting(queue.waiting, ' of it')}, and ${queue.waiting === 1 ? 'its caller' : 'their callers'} as well.`,
      todo: 'Resume it when the reason is gone.',
      link: '/queues',
    });
  return items;
}

function ofStorageHosts({ appliance, storageHosts }: Seen): Item[] {
  if (!appliance) return [];
  const items: Item[] = [];
  for (const { name, state, homeOf, waiting: held, seenAt, draining } of storageHosts) {
    if (state === 'down' && homeOf > 0)
      items.push({
        rule: 'storage_host_down',
        object: name,
        what: `Storage host ${name}, which has ${count(homeOf, 'pool')}, has said nothing since ${seenAt.toISOString()}.`,
        means: `Callers of its pools are told so; ${waiting(held, ' for it')}. All else goes on.`,
        todo: 'See TrivetStorageHostDown in the runbook: start its worker again, or move its pools to where their disks are.',
        link: '/workers',
      });
    if (draining)
      items.push({
        rule: 'storage_host_draining',
        object: name,
        what: `Storage host ${name} is drained since ${draining.since.toISOString()} by ${draining.by}${draining.reason ? `: ${draining.reason}` : ''}.`,
        means: `It takes no further pool into use, and has ${count(homeOf, 'pool')} still, shares included.`,
        todo: 'Move what it has, or take it back into use when the reason is gone.',
        link: '/workers',
      });
  }
  return items;
}

function ofBackends({ backends, pools, findings }: Conditions): Item[] {
  const items: Item[] = [];
  for (const backend of backends.filter(silenceOf)) {
    const { tenant, name, circuit, waiting: held } = backend;
    items.push({
      rule: 'backend_silent',
      object: `${tenant}/${name}`,
      what: `Backend ${name} of tenant ${tenant} does not answer: ${silenceOf(backend)?.reason}.`,
      means: `Its callers are told so${circuit === 'open' ? ' at once' : ''}; ${waiting(held, ' for it')} and ${held === 1 ? 'goes' : 'go'} on by ${held === 1 ? 'itself' : 'themselves'} when it is back.`,
      todo: 'Look whether it runs and can be reached; test the connection.',
      link: `/tenants/${tenant}/backends/${name}`,
    });
  }
  for (const { tenant, name, fault } of backends.filter(each => !silenceOf(each) && each.fault !== null))
    items.push({
      rule: 'backend_fault',
      object: `${tenant}/${name}`,
      what: `Backend ${name} of tenant ${tenant} cannot be used: ${fault}.`,
      means: 'Work there fails or waits for a person until that is mended.',
      todo: 'Mend what it says, or change its keys; then test the connection.',
      link: `/tenants/${tenant}/backends/${name}`,
    });
  for (const pool of pools) {
    const share = Number(pool.total) > 0 ? Number(pool.used) / Number(pool.total) : 0;
    const link = `/tenants/${pool.tenant}/backends/${pool.backend}`;
    if (pool.state === 'down')
      items.push({
        rule: 'pool_down',
        object: `${pool.tenant}/${pool.backend}/${pool.pool}`,
        what: `Pool ${pool.pool} of backend ${pool.backend}, tenant ${pool.tenant}, is down${pool.reason ? `: ${pool.reason}` : ''}.`,
        means: 'Calls on its volumes are refused, accepted work waits, and nothing is made anew.',
        todo: 'Mount what belongs there; see TrivetPoolDown in the runbook.',
        link,
      });
    else if (share > POOL_MARKS.filling)
      items.push({
        rule: share > POOL_MARKS.full ? 'pool_full' : 'pool_filling',
        object: `${pool.tenant}/${pool.backend}/${pool.pool}`,
        what: `Pool ${pool.pool} of backend ${pool.backend}, tenant ${pool.tenant}, is ${Math.floor(share * 100)} % full.`,
        means:
          share > POOL_MARKS.full
            ? `Above ${percentOf(POOL_MARKS.full)} the recycle bin is emptied before its time; when it is full, writes of hosts fail.`
            : `Above ${percentOf(POOL_MARKS.filling)} nothing new is made in it, and its protection templates are paused.`,
        todo: 'Enlarge it, delete snapshots and volumes, or make new volumes elsewhere.',
        link,
      });
  }
  for (const { tenant, backend, kind, found, example } of findings)
    items.push({
      rule: kind === 'lost_image' ? 'image_lost' : 'orphan',
      object: `${tenant}/${backend}/${kind}`,
      what: `${count(found, kind.replaceAll('_', ' '))} at backend ${backend}, tenant ${tenant}: ${example}`,
      means: MEANS_OF_FINDING[kind] ?? 'It is left as it is; nothing depends on it.',
      todo: 'See `trivet pool findings`, and decide for each.',
      link: `/tenants/${tenant}/backends/${backend}`,
    });
  return items;
}

const MEANS_OF_FINDING: Readonly<Record<string, string>> = {
  lost_image: 'Data is not where it should be. Nothing was deleted or made anew.',
  larger_image: 'It is served as before, and has all of its data: an expansion was given up after its file had grown.',
};

/** An error of one that waits, and of one that is tried again: what follows, and what to do. */
const STUCK = {
  parked: {
    rule: 'operation_parked',
    means: 'Trivet cannot decide how to go on; what it is about stays as it is until somebody does.',
    todo: 'Mend what the error says, then retry it; or cancel or resolve it.',
    filter: 'state=needs_attention',
  },
  retried: {
    rule: 'operation_retried',
    means: 'It ends by itself once the cause is gone, each try later than the one before.',
    todo: 'Mend what the error says; a retry saves the wait then.',
    filter: 'stuck=true&state=pending,running',
  },
} as const;

function ofOperations({ stuck: { causes, more }, conditions }: Seen): Item[] {
  const silent = new Set(conditions.backends.filter(silenceOf).map(({ tenant, name }) => `${tenant}/${name}`));
  const items: Item[] = causes
    // Of these the backend's own notice says all there is to say.
    .filter(
      ({ parked, tenant, backend, error }) => parked || !silent.has(`${tenant}/${backend}`) || !UNHEARD.has(error),
    )
    .map(ofCause);
  for (const sort of ['parked', 'retried'] as const) {
    const { causes: others, operations } = more[sort];
    const { rule, means, todo, filter } = STUCK[sort];
    if (others > 0)
      items.push({
        rule,
        object: 'others',
        what: `${count(operations, 'more operation')} for ${count(others, 'other cause')}.`,
        means,
        todo,
        link: `/operations?${filter}`,
      });
  }
  return items;
}

const UNHEARD: ReadonlySet<string> = new Set(['unavailable', 'timeout']);

/** One is named; of several that one thing holds up the oldest is. */
function ofCause({ tenant, backend, error, parked, found, oldest }: Seen['stuck']['causes'][number]): Item {
  const { rule, means, todo, filter } = STUCK[parked ? 'parked' : 'retried'];
  const object = `${tenant}/${backend}/${error}`;
  const { id, kind, resourceKind, resourceName, message, createdAt } = oldest;
  const name = nameOf({ kind, resourceKind, resourceName });
  const reason = message ?? 'no reason is known';
  if (found === 1)
    return {
      rule,
      object,
      what: `${name}, tenant ${tenant}, ${parked ? 'waits for a person' : 'has failed more than three times'}: ${reason}`,
      means,
      todo,
      link: `/operations/${id}`,
    };
  // A bulk is of no backend, and nothing else is.
  const at = backend === '' ? 'kind=bulk.run' : `backend=${encodeURIComponent(backend)}`;
  const where = `tenant=${tenant}&${at}&error=${encodeURIComponent(error)}`;
  return {
    rule,
    object,
    what: `${found} operations${backend === '' ? '' : ` at backend ${backend}`}, tenant ${tenant}, ${parked ? 'wait for a person' : 'have failed more than three times'}: ${error}`,
    means,
    todo,
    link: `/operations?${filter}&${where}`,
    oldest: { operation: id, what: `${name}: ${reason}`, at: createdAt.toISOString() },
  };
}

const ofSlowCalls = ({ slowCalls }: Seen): Item[] =>
  slowCalls.map(({ tenant, backend, call, operations, oldest: { operation, what, since } }) => ({
    rule: 'slow_call',
    object: `${tenant}/${backend}/${call}`,
    what: `${operations === 1 ? `${what}, backend ${backend} of tenant ${tenant}, waits` : `${count(operations, 'operation')} at backend ${backend}, tenant ${tenant}, wait`} for an answer to ${operations === 1 ? 'its call' : 'their calls'} ${call}${operations === 1 ? ` since ${since}` : ''}.`,
    means: 'Large images take their time, and its lease holds meanwhile. What is in line behind it waits as long.',
    todo: 'If its pool and backend are well and nothing moves, release it: another worker goes on from what is there.',
    link:
      operations === 1
        ? `/operations/${operation}`
        : `/operations?state=running&tenant=${tenant}&backend=${encodeURIComponent(backend)}`,
    ...(operations === 1 ? {} : { oldest: { operation, what, at: since } }),
  }));

/** As people call it. */
export const nameOf = (of: { kind: string; resourceKind: string; resourceName: string }): string =>
  `${of.kind} of ${of.resourceKind.replaceAll('_', ' ')} ${of.resourceName}`;

const ofResources = ({ resources }: Conditions): Item[] =>
  resources.map(({ tenant, kind, found, name, message }) => ({
    rule: 'object_withheld',
    object: `${tenant}/${kind}`,
    what: `${found === 1 ? `${kind} ${name}` : `${found} ${kind}s, one of them ${name}`}, tenant ${tenant}: ${message}`,
    means: 'It is not served until that is mended.',
    todo: 'Look at what it says, and at the backend.',
    link: `/tenants/${tenant}/${LIST[kind]}`,
  }));

const percentOf = (part: number): string => `${Math.round(part * 100)} %`;
const count = (found: number, what: string): string => `${found} ${what}${found === 1 ? '' : 's'}`;
const waiting = (found: number, which = ''): string =>
  `${count(found, 'operation')}${which} ${found === 1 ? 'waits' : 'wait'}`;
