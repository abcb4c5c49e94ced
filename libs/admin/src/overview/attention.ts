import type { OverviewReply } from '#admin/contract/overview';
import type { OperationRow } from '#operations/operation-list';
import type { Pulse } from '#operations/operation-pulse';
import type { QueueView, WorkerView } from '#operations/worker-directory';
import type { Conditions } from '#storage/condition-report';

export type Attention = OverviewReply['attention'][number];

export interface Seen {
  /** The appliance's administrators see what is of no tenant, too. */
  appliance: boolean;
  /** As they are served, whatever becomes of the work behind them. */
  legs: OverviewReply['legs'];
  conditions: Conditions;
  pulse: Pulse;
  /** Some of those that wait for a person. */
  parked: readonly (OperationRow & { tenant: string })[];
  workers: readonly WorkerView[];
  queues: readonly QueueView[];
  /** Of TLS, when this process serves it: until when it is good. */
  certificate: { path: string; until: Date } | undefined;
}

/** Beyond it, what is promised soon does not fit any more. */
const FULL = { warning: 0.9, error: 0.97 };
const CERTIFICATE_MS = 14 * 86_400_000;

const LIST: Readonly<Record<'volume' | 'snapshot' | 'bucket', string>> = {
  volume: 'volumes',
  snapshot: 'snapshots',
  bucket: 'buckets',
};

/** What a person has to look at, the most severe first. Each says what is wrong, what follows from it, and what to do. */
export function attentionFor(seen: Seen): Attention[] {
  const all = [
    ...ofDoors(seen),
    ...ofWorkers(seen),
    ...ofBackends(seen.conditions),
    ...ofOperations(seen),
    ...ofResources(seen.conditions),
  ];
  return [...all.filter(item => item.severity === 'error'), ...all.filter(item => item.severity === 'warning')];
}

function ofDoors({ appliance, legs, certificate }: Seen): Attention[] {
  if (!appliance) return [];
  const items: Attention[] = legs
    .filter(({ health }) => health === 'down' || health === 'degraded')
    .map(({ name, health, detail }) => ({
      severity: health === 'down' ? 'error' : 'warning',
      what: `${name.toUpperCase()} is ${health === 'down' ? 'not served' : 'served in part'}: ${detail}`,
      means: 'Callers there get no answer; what was accepted before goes on.',
      todo: 'See the endpoints for the reason; run `trivet doctor` on the host of this gateway, and look at its log.',
      link: null,
    }));
  const left = certificate ? certificate.until.getTime() - Date.now() : Number.POSITIVE_INFINITY;
  if (certificate && left < CERTIFICATE_MS)
    items.push({
      severity: left < 0 ? 'error' : 'warning',
      what: `The TLS certificate ${left < 0 ? 'has expired' : 'expires'} on ${certificate.until.toISOString()}.`,
      means: 'After that, clients that check it refuse to connect.',
      todo: `Replace ${certificate.path}; the gateway takes it within half a minute.`,
      link: null,
    });
  return items;
}

function ofWorkers({ appliance, workers, queues, pulse }: Seen): Attention[] {
  const items: Attention[] = [];
  const up = workers.filter(({ state }) => state === 'up').length;
  if (up === 0)
    items.push({
      severity: 'error',
      what: 'No worker is up.',
      means: `Nothing that was accepted is carried out: ${pulse.waiting} operations wait. None is lost.`,
      todo: appliance ? 'Start a worker; `trivet status` says what became of it.' : 'Tell whoever runs the appliance.',
      link: appliance ? '/workers' : null,
    });
  if (!appliance) return items;
  for (const { host, pid, seenAt } of workers.filter(({ state }) => state === 'lost'))
    items.push({
      severity: 'warning',
      what: `The worker ${host}, process ${pid}, has said nothing since ${seenAt.toISOString()}.`,
      means: 'It has died, or its machine stands still. Others have taken over what it had.',
      todo: 'Look at its log. A worker that is not coming back is forgotten after a day.',
      link: '/workers',
    });
  for (const queue of queues.filter(({ paused }) => paused))
    items.push({
      severity: 'warning',
      what: `The class ${queue.class} is paused by ${queue.changedBy ?? 'somebody'}${queue.reason ? `: ${queue.reason}` : ''}.`,
      means: `${queue.waiting} operations of it wait, and their callers with them.`,
      todo: 'Resume it when the reason is gone.',
      link: '/queues',
    });
  return items;
}

function ofBackends({ backends, pools, findings }: Conditions): Attention[] {
  const items: Attention[] = [];
  for (const { tenant, name, reason } of backends.filter(({ open }) => open))
    items.push({
      severity: 'error',
      what: `Backend ${name} of tenant ${tenant} does not answer${reason ? `: ${reason}` : ''}.`,
      means: 'Its callers are told so at once; accepted work waits and goes on by itself when it is back.',
      todo: 'Look whether it runs and can be reached; test the connection.',
      link: `/tenants/${tenant}/backends/${name}`,
    });
  for (const pool of pools) {
    const share = Number(pool.total) > 0 ? Number(pool.used) / Number(pool.total) : 0;
    const link = `/tenants/${pool.tenant}/backends/${pool.backend}`;
    if (pool.state === 'down')
      items.push({
        severity: 'error',
        what: `Pool ${pool.pool} of backend ${pool.backend}, tenant ${pool.tenant}, is down${pool.reason ? `: ${pool.reason}` : ''}.`,
        means: 'Calls on its volumes are refused, accepted work waits, and nothing is made anew.',
        todo: 'Mount what belongs there; see TrivetPoolDown in the runbook.',
        link,
      });
    else if (share >= FULL.warning)
      items.push({
        severity: share >= FULL.error ? 'error' : 'warning',
        what: `Pool ${pool.pool} of backend ${pool.backend}, tenant ${pool.tenant}, is ${Math.floor(share * 100)} % full.`,
        means: 'Above 95 % the recycle bin is emptied before its time; when it is full, writes of hosts fail.',
        todo: 'Enlarge it, delete snapshots and volumes, or make new volumes elsewhere.',
        link,
      });
  }
  for (const { tenant, backend, kind, found, example } of findings)
    items.push({
      severity: kind === 'lost_image' ? 'error' : 'warning',
      what: `${found} of ${kind.replaceAll('_', ' ')} at backend ${backend}, tenant ${tenant}: ${example}`,
      means:
        kind === 'lost_image'
          ? 'Data is not where it should be. Nothing was deleted or made anew.'
          : 'It is left as it is; nothing depends on it.',
      todo: 'See `trivet pool findings`, and decide for each.',
      link: `/tenants/${tenant}/backends/${backend}`,
    });
  return items;
}

function ofOperations({ parked, pulse }: Seen): Attention[] {
  const items: Attention[] = parked.map(({ id, kind, resourceKind, resourceName, tenant, error }) => ({
    severity: 'error',
    what: `${kind} of ${resourceKind} ${resourceName}, tenant ${tenant}, waits for a person: ${error?.message ?? 'no reason is known'}`,
    means: `Trivet cannot decide how to go on with it; the ${resourceKind} stays as it is until somebody does.`,
    todo: 'Mend what the error says, then retry it; or cancel or resolve it.',
    link: `/operations/${id}`,
  }));
  if (pulse.parked > parked.length)
    items.push({
      severity: 'error',
      what: `${pulse.parked - parked.length} more operations wait for a person.`,
      means: 'What they are about stays as it is until somebody decides.',
      todo: 'Go through the list of them.',
      link: '/operations?state=needs_attention',
    });
  const retried = pulse.stuck - pulse.parked;
  if (retried > 0)
    items.push({
      severity: 'warning',
      what: `${retried} operations have failed more than three times, and are tried again.`,
      means: 'They end by themselves once the cause is gone, each try later than the one before.',
      todo: 'Look at their errors; when the cause is mended, retry them to save the wait.',
      link: '/operations?stuck=true&state=pending,running',
    });
  return items;
}

const ofResources = ({ resources }: Conditions): Attention[] =>
  resources.map(({ tenant, kind, found, name, message }) => ({
    severity: 'warning',
    what: `${found === 1 ? `${kind} ${name}` : `${found} ${kind}s, one of them ${name}`}, tenant ${tenant}: ${message}`,
    means: 'It is not served until that is mended.',
    todo: 'Look at what it says, and at the backend.',
    link: `/tenants/${tenant}/${LIST[kind]}`,
  }));
