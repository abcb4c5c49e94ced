import type { CallLogRow } from '#test/fakes/object/fake-control';
import type { TestAppliance } from '#test/support/appliance';

/** One claim of one operation, from its lease to whatever ended it. Milliseconds since the epoch. */
export interface Attempt {
  operationId: string;
  kind: string;
  /** Ids of all resources whose slots it held. */
  resources: readonly string[];
  worker: string;
  fence: number;
  from: number;
  /** Infinity while it runs. */
  to: number;
  /**
   * Numbers of the events that say so. Their times are when a statement came in, and who takes what another one has just left may
   * have come in before that one did; his number is higher all the same, since he saw the other's commit.
   */
  begun: number;
  ended: number;
}

export interface History {
  calls: readonly CallLogRow[];
  attempts: readonly Attempt[];
  /** Worker id to process id. */
  pids: ReadonlyMap<string, number>;
  /** Registered buckets carry no tag, so calls name no incarnation: name to id. */
  registered: ReadonlyMap<string, string>;
}

/** Both clocks are this machine's; one of them counts whole milliseconds. */
export const TICK = 2;

/**
 * Replays what the workers did and what the store saw, and says what broke a promise:
 *  P2: an incarnation is created once and never comes back; a key that was taken away never comes back.
 *  P3: attempts at operations that share a resource do not overlap.
 *  P4: fences grow by one; nothing changes at the store outside of a living attempt of the very process that did it.
 * An effect that the store delivers late needs no living attempt, but must come before the end of what it is about.
 */
export function violations(history: History): string[] {
  return [...fences(history), ...overlaps(history), ...staleEffects(history), ...lives(history)];
}

export function fences({ attempts }: Pick<History, 'attempts'>): string[] {
  const last = new Map<string, number>();
  return attempts.flatMap(({ operationId, kind, fence }) => {
    const expected = (last.get(operationId) ?? 0) + 1;
    last.set(operationId, fence);
    return fence === expected ? [] : [`P4: ${kind} ${operationId} went on with fence ${fence} instead of ${expected}`];
  });
}

export function overlaps({ attempts }: Pick<History, 'attempts'>): string[] {
  const found: string[] = [];
  const byResource = Map.groupBy(
    attempts.flatMap(attempt => attempt.resources.map(resource => ({ resource, attempt }))),
    ({ resource }) => resource,
  );
  for (const [resource, list] of byResource) {
    const ordered = list.map(({ attempt }) => attempt).sort((a, b) => a.begun - b.begun);
    for (const [at, next] of ordered.entries()) {
      const before = ordered[at - 1];
      if (before && next.begun < before.ended)
        found.push(
          `P3: ${next.kind} ${next.operationId} began at ${resource} ${Math.ceil(before.to - next.from)} ms before ${before.kind} ended`,
        );
    }
  }
  return found;
}

const changes = (row: CallLogRow): boolean =>
  row.phase === 'effect' && ['created', 'changed', 'deleted'].includes(row.outcome!);

function staleEffects({ calls, attempts, pids, registered }: History): string[] {
  return calls.filter(changes).flatMap(row => {
    const resource = row.incarnation ?? registered.get(row.resource) ?? row.resource.replace(/^trivet-/, '');
    const allowed = attempts.some(
      attempt =>
        pids.get(attempt.worker) === row.pid &&
        attempt.resources.includes(resource) &&
        row.at >= attempt.from - TICK &&
        row.at <= attempt.to + TICK,
    );
    return allowed ? [] : [`P4: ${row.method} by ${row.pid} ${row.outcome} ${row.resource} without a lease`];
  });
}

/** Who made, and whose end has been seen. A name may live again, an incarnation and an account never. */
function lives({ calls }: History): string[] {
  const found: string[] = [];
  const holder = new Map<string, string>();
  const ended = new Set<string>();
  for (const call of calls) {
    const row = { ...call, outcome: call.outcome?.replace(/^late /, '') ?? null };
    if (!changes(row)) continue;
    const one = row.incarnation ?? row.resource;
    if (ended.has(one) && row.outcome !== 'deleted')
      found.push(`P2: ${row.method} ${row.outcome} ${row.resource} of ${one} after its end`);
    if (row.method === 'createBucket') {
      const other = holder.get(row.resource);
      if (other) found.push(`P2: ${row.resource} was created for ${one} while it belonged to ${other}`);
      holder.set(row.resource, one);
    } else if (row.method === 'configureBucket' && holder.get(row.resource) !== one)
      found.push(`P2: ${row.resource} of ${holder.get(row.resource)} was configured for ${one}`);
    else if (row.method === 'deleteBucket') {
      if (holder.get(row.resource) !== one)
        found.push(`P2: ${row.resource} of ${holder.get(row.resource)} was deleted for ${one}`);
      holder.delete(row.resource);
      ended.add(one);
    } else if (row.method === 'removeKey' || row.method === 'removePrincipal') ended.add(one);
  }
  return found;
}

const ENDS = ['attempt', 'retry', 'needs_attention', 'succeeded', 'failed', 'cancelled'];

/** Reads the whole history of an appliance of this test. */
export async function historyOf(appliance: TestAppliance): Promise<History> {
  const registered = await appliance.database.query<{ name: string; id: string }>(
    "SELECT name, id FROM trivet.bucket WHERE origin = 'registered'",
  );
  return {
    calls: appliance.fake!.calls(),
    attempts: await attemptsOf(appliance),
    pids: pidsOf(appliance),
    registered: new Map(registered.map(({ name, id }) => [name, id])),
  };
}

export async function attemptsOf(appliance: TestAppliance): Promise<Attempt[]> {
  const events = await appliance.database.query<{
    operation_id: string;
    kind: string;
    type: string;
    at: number;
    worker: string | null;
    fence: number | null;
    resources: string[];
    seq: number;
  }>(
    `SELECT e.operation_id, e.seq::float8 AS seq, o.kind, e.type, extract(epoch FROM e.at)::float8 * 1000 AS at, e.detail ->> 'worker' AS worker,
            (e.detail ->> 'fence')::int AS fence,
            ARRAY [o.resource_id::text] || ARRAY (SELECT jsonb_array_elements_text(o.request -> 'resources')) AS resources
       FROM trivet.operation_event e JOIN trivet.operation o ON o.tenant_id = e.tenant_id AND o.id = e.operation_id
      WHERE e.type = ANY ($1) ORDER BY e.seq`,
    [ENDS],
  );
  const attempts: Attempt[] = [];
  const running = new Map<string, Attempt>();
  for (const { operation_id: operationId, kind, type, at, worker, fence, resources, seq } of events) {
    const before = running.get(operationId);
    if (before) Object.assign(before, { to: at, ended: seq });
    running.delete(operationId);
    if (type !== 'attempt') continue;
    const [begin, end] = [
      { from: at, begun: seq },
      { to: Infinity, ended: Infinity },
    ];
    const attempt = { operationId, kind, resources, worker: worker!, fence: fence!, ...begin, ...end };
    attempts.push(attempt);
    running.set(operationId, attempt);
  }
  return attempts;
}

/** Worker id to process id, from what the workers logged. */
export function pidsOf(appliance: TestAppliance): Map<string, number> {
  const pids = new Map<string, number>();
  for (const process of appliance.processes) {
    const id = /"worker":"([0-9a-f-]{36})"/.exec(process.log())?.[1];
    if (id) pids.set(id, process.pid);
  }
  return pids;
}
