import { type Attempt, attemptsOf, fences, overlaps, pidsOf, TICK } from '#test/crash/history';
import type { CallLogRow } from '#test/fakes/object/fake-control';
import type { TestAppliance } from '#test/support/appliance';
import { targetName } from '#test/support/target-name';

export interface BlockHistory {
  attempts: readonly Attempt[];
  /** Empty where no fake stands before the parts. */
  calls: readonly CallLogRow[];
  /** Worker id to process id. */
  pids: ReadonlyMap<string, number>;
  /** Image or target to the resources by which an operation may have had it. */
  owners: ReadonlyMap<string, readonly string[]>;
  /** Images of group cuts, which are discarded as a whole and made anew under their names. */
  grouped: ReadonlySet<string>;
}

/** The compatibility matrix once more (volume-slots.ts, index-slot.ts): what each kind keeps others from at its volumes. */
const ALL = ['lifecycle', 'exports', 'images'];
const SLOTS: Readonly<Record<string, readonly string[]>> = {
  'volume.create': ALL,
  'volume.clone': ALL,
  'volume.expand': ALL,
  'volume.delete': ALL,
  'volume.publish': ['exports'],
  'volume.unpublish': ['exports'],
  'volume.replay': ['exports'],
  'snapshot.create': ['images'],
  'snapshot_group.create': ['images', 'exports'],
  'snapshot.release': ['index'],
  'changes.index': ['index'],
  'changes.merge': ['index'],
};
/** Its own resource is a volume, and stands for it when no other is named. */
const isOfVolume = (kind: string): boolean => kind.startsWith('volume.') || kind === 'changes.merge';
/** Named after what it reads: a deletion may begin beside it, and leaves the image (kept-images.ts). */
const READERS = new Set(['changes.index']);

/** By method: what it changes if it did anything. */
const CHANGES = new Set([
  'stage',
  'stageTogether',
  'commit',
  'discardStages',
  'growImage',
  'removeImage',
  'applyTarget',
  'resizeTarget',
  'removeTarget',
]);

/**
 * What broke a promise:
 *  P2: an image is made once and never comes back.
 *  P3: attempts that need the same slot of a volume, or the same resource of their own, do not overlap.
 *  P4: fences grow by one; nothing changes outside of a living attempt of the very process that did it.
 */
export const blockViolations = (history: BlockHistory): string[] => [
  ...fences(history),
  ...overlaps({ attempts: history.attempts.map(bySlots) }),
  ...strangers(history),
  ...lives(history),
];

/** In place of the resources: each of their slots. A kind that says nothing of volumes has its own resource alone. */
function bySlots(attempt: Attempt): Attempt {
  const slots = SLOTS[attempt.kind] ?? [];
  if (slots.length === 0 && isOfVolume(attempt.kind)) throw new Error(`say in SLOTS which slots ${attempt.kind} takes`);
  const [own, ...others] = attempt.resources;
  const volumes = isOfVolume(attempt.kind) && others.length === 0 ? [own!] : others;
  const resources = volumes.flatMap(volume => slots.map(slot => `${volume}/${slot}`));
  return {
    ...attempt,
    resources: volumes.includes(own!) || READERS.has(attempt.kind) ? resources : [own!, ...resources],
  };
}

function strangers({ calls, attempts, pids, owners }: BlockHistory): string[] {
  return calls.filter(isChange).flatMap(row => {
    // A cut of several images names them all.
    const allowed = row.resource
      .split(',')
      .every(resource =>
        attempts.some(
          attempt =>
            pids.get(attempt.worker) === row.pid &&
            attempt.resources.some(one => one === resource || owners.get(resource)?.includes(one)) &&
            row.at >= attempt.from - TICK &&
            row.at <= attempt.to + TICK,
        ),
      );
    return allowed ? [] : [`P4: ${row.method} by ${row.pid} was ${row.outcome} at ${row.resource} without a lease`];
  });
}

/** Late calls are judged by what came of them: refused by the fence, or without effect. */
const isChange = ({ phase, method, outcome }: CallLogRow): boolean =>
  phase === 'effect' && CHANGES.has(method) && outcome !== 'unchanged' && !outcome!.startsWith('late ');

function lives({ calls, grouped }: BlockHistory): string[] {
  const made = new Set<string>();
  const ended = new Set<string>();
  return calls
    .filter(({ phase }) => phase === 'effect')
    .flatMap(({ method, resource, outcome }) => {
      if (outcome === 'deleted') {
        if (!grouped.has(resource)) ended.add(resource);
        made.delete(resource);
      }
      if (method !== 'commit' || outcome !== 'created') return [];
      const again = made.has(resource) || ended.has(resource);
      made.add(resource);
      return again ? [`P2: image ${resource} was made a second time`] : [];
    });
}

export async function blockHistoryOf(appliance: TestAppliance): Promise<BlockHistory> {
  const rows = await appliance.database.query<{ id: string; volume_id: string; snapshot_group_id: string | null }>(
    'SELECT id, volume_id, snapshot_group_id FROM trivet.snapshot',
  );
  const volumes = await appliance.database.query<{ id: string }>('SELECT id FROM trivet.volume');
  const owners = new Map<string, string[]>();
  for (const { id } of volumes) owners.set(targetName(id), [id]);
  for (const { id, volume_id, snapshot_group_id } of rows)
    owners.set(id, [volume_id, ...(snapshot_group_id === null ? [] : [snapshot_group_id])]);
  return {
    attempts: await attemptsOf(appliance),
    calls: appliance.fakeBlock?.calls() ?? [],
    pids: pidsOf(appliance),
    owners,
    grouped: new Set(rows.filter(row => row.snapshot_group_id !== null).map(({ id }) => id)),
  };
}
