import { setTimeout } from 'node:timers/promises';
import type { RangeBatch } from '#backends/extent-source';
import type { ChangedBlocks, ChangedRanges, ChangesQuery, SnapshotKey } from '#changes/changed-blocks';
import { type Asked, findBase, findTarget, requireInside, requireOrder } from '#changes/find-snapshots';
import { brokenBetween, readLists, readSpans } from '#changes/index-store';
import { none, overlayAll, shaped } from '#changes/overlay';
import { paced } from '#changes/paced';
import { Pins } from '#changes/pins';
import { cheapestPath, farthest, type Span } from '#changes/span-path';
import { StepLost, storedRanges } from '#changes/stored-ranges';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError, StorageError } from '#platform/errors';
import type { BlockDirectory } from '#storage/shared/backend-directory';

const NEXT_CUT = sql(
  'changes_next_cut',
  `SELECT s.index_state AS "indexState" FROM trivet.snapshot s
    WHERE s.tenant_id = $1 AND s.volume_id = $2 AND s.cut > $3 AND s.cut <= $4 AND s.index_state <> 'broken'
    ORDER BY s.cut LIMIT 1`,
);
/** For a step that is still to be built, also of callers without a deadline. */
const LONGEST_WAIT_MS = 60_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 500;
/** Lists in which a snapshot's content may begin: beyond a gap the nearest one is of no use. */
const LISTS = 3;
/** Of the process: fifty readers at once would leave nobody else a connection. */
const READS_AT_ONCE = 4;
/** Up to so many steps at once are read ahead: beyond it slow readers would keep too much. */
const READ_AHEAD = 4;

interface Question extends ChangesQuery {
  from: number;
  asked: Asked;
  base?: Asked;
}

/** Where ranges come from; opened at an offset, and anew at another one when it fails on the way. */
type Ranges = (from: number) => AsyncIterable<RangeBatch>;

/**
 * Answers from the index; from the images themselves while a step is missing, or when what is stored is damaged. Both say
 * the same, so a stream that has begun with one may end with the other.
 */
export class ChangedBlocksService implements ChangedBlocks {
  private readonly chunks: Database;

  constructor(
    private readonly database: Database,
    private readonly blocks: BlockDirectory,
  ) {
    this.chunks = paced(database, READS_AT_ONCE);
  }

  async allocated(query: ChangesQuery): Promise<ChangedRanges> {
    const { tenantId } = query;
    const question = await this.database.withTenant(tenantId, async tx => {
      const asked = await findTarget(tx, tenantId, query.target);
      return { ...query, from: requireInside(query.from, asked), asked };
    });
    return this.answer(question);
  }

  async delta(query: ChangesQuery & { base: SnapshotKey }): Promise<ChangedRanges> {
    const { tenantId } = query;
    const question = await this.database.withTenant(tenantId, async tx => {
      const asked = await findTarget(tx, tenantId, query.target);
      const base = await findBase(tx, tenantId, query.base, asked);
      requireOrder(base, asked);
      return { ...query, from: requireInside(query.from, asked), asked, base };
    });
    return this.answer(question);
  }

  private async answer(question: Question): Promise<ChangedRanges> {
    const { asked, base, from, signal, waits } = question;
    const head = { volumeId: asked.volumeId, capacityBytes: asked.sizeBytes };
    if (base?.id === asked.id || from === asked.sizeBytes) return { ...head, batches: none(), source: 'empty' };
    const giveUpAt = performance.now() + (waits ? LONGEST_WAIT_MS : 0);
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      const steps = await this.plan(question);
      if (steps) return { ...head, batches: this.fromIndex(question, steps), source: 'index' };
      const pins = await this.pin(question);
      if (pins) return { ...head, batches: this.shape(question, this.walk(question, pins), from), source: 'walk' };
      const reason = await this.unknown(question);
      if (reason === undefined) continue;
      if (reason.kind !== 'unavailable' || performance.now() >= giveUpAt) throw reason;
      await setTimeout(pause, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }

  /** The stored steps that together are the answer; undefined: there is none yet, or any more. */
  private plan({ tenantId, asked, base }: Question): Promise<Span[] | undefined> {
    return this.database.withTenant(tenantId, async tx => {
      if (!base) return contentOf(tx, tenantId, asked);
      const spans = await readSpans(tx, tenantId, asked.volumeId, base.cut, asked.cut);
      return cheapestPath(spans, base.cut, asked.cut);
    });
  }

  private async *fromIndex(question: Question, planned: readonly Span[]): AsyncGenerator<RangeBatch> {
    const { tenantId, signal } = question;
    let at = question.from;
    for (let steps: readonly Span[] | undefined = planned; steps; steps = await this.plan(question)) {
      const ahead = steps.length <= READ_AHEAD;
      const stored: Ranges = from =>
        overlayAll(steps!.map(step => storedRanges(this.chunks, tenantId, step, from, signal, ahead)));
      try {
        for await (const batch of this.shape(question, stored, at, at > question.from)) {
          at = batch.offsets[batch.count - 1]! + batch.lengths[batch.count - 1]!;
          yield batch;
        }
        return;
      } catch (error) {
        if (!(error instanceof StepLost)) throw error;
      }
    }
    const pins = await this.pin(question);
    if (!pins) throw (await this.unknown(question)) ?? stillIndexed(question.asked);
    yield* this.shape(question, this.walk(question, pins), at, at > question.from);
  }

  /** @param exactly what comes before `from` was handed on already: a range that reaches over it is cut */
  private shape({ asked, base }: Question, ranges: Ranges, from: number, exactly = false): AsyncIterable<RangeBatch> {
    const shape = { from, end: asked.sizeBytes, keepHoles: base !== undefined, kinds: false };
    const shapely = shaped(ranges(from), shape);
    return exactly ? beginningAt(from, shapely) : shapely;
  }

  /** Undefined: not both images are there. */
  private async pin({ tenantId, asked, base }: Question): Promise<Pins | undefined> {
    if (!asked.hasImage || base?.hasImage === false) return undefined;
    return Pins.take(this.database, tenantId, base ? [base.id, asked.id] : [asked.id], 'walk');
  }

  private walk({ tenantId, asked, base, signal }: Question, pins: Pins): Ranges {
    const { blocks } = this;
    // Who leaves before the first range never begins to iterate, and nobody else lets the images go.
    const left = (): void => void pins.release();
    signal.addEventListener('abort', left, { once: true });
    if (signal.aborted) left();
    return async function* (from) {
      signal.removeEventListener('abort', left);
      signal.throwIfAborted();
      pins.hold();
      try {
        const { extents } = await blocks.open(tenantId, asked.backendId);
        yield* base
          ? extents.changed(base.image, asked.image, from, signal)
          : extents.allocated(asked.image, from, signal);
      } catch (error) {
        throw isStorageError(error) && error.kind === 'not_found' ? lost(error) : error;
      } finally {
        await pins.release();
      }
    };
  }

  /** Neither stored nor to be found out by comparing: will it be? Undefined: it has become so since that was looked at. */
  private async unknown({ tenantId, asked, base }: Question): Promise<StorageError | undefined> {
    const resource = `snapshot ${asked.name}`;
    if (!base) return lost(new StorageError('not_found', `the image of ${resource} is gone`));
    return this.database.withTenant(tenantId, async tx => {
      const key = [tenantId, asked.volumeId] as const;
      const reached = farthest(await readSpans(tx, ...key, base.cut, asked.cut), base.cut);
      const [next] = await tx.query<{ indexState: Asked['indexState'] }>(NEXT_CUT, [...key, reached, asked.cut]);
      if (asked.indexState !== 'broken' && base.indexState !== 'broken' && next?.indexState === 'pending')
        return stillIndexed(asked);
      // The step that is not awaited any more may have been stored just now.
      if (cheapestPath(await readSpans(tx, ...key, base.cut, asked.cut), base.cut, asked.cut)) return undefined;
      const reason = await brokenBetween(tx, ...key, base.cut, asked.cut);
      return new StorageError(
        'failed_precondition',
        `what changed from ${base.name} to ${asked.name} is not known any more${reason ? ` (${reason})` : ''}; do a full backup`,
        { resource },
      );
    });
  }
}

/** The nearest allocated list from which steps lead to the snapshot, and these steps; undefined: there is none. */
async function contentOf(tx: Tx, tenantId: string, { volumeId, cut }: Asked): Promise<Span[] | undefined> {
  const lists = await readLists(tx, tenantId, volumeId, cut, LISTS);
  if (lists.length === 0) return undefined;
  const spans = await readSpans(tx, tenantId, volumeId, lists.at(-1)!.to, cut);
  for (const list of lists) {
    const path = cheapestPath(spans, list.to, cut);
    if (path) return [list, ...path];
  }
  return undefined;
}

async function* beginningAt(from: number, batches: AsyncIterable<RangeBatch>): AsyncGenerator<RangeBatch> {
  for await (const batch of batches) {
    if (batch.offsets[0]! < from) {
      batch.lengths[0] = batch.offsets[0]! + batch.lengths[0]! - from;
      batch.offsets[0] = from;
    }
    yield batch;
  }
}

const stillIndexed = ({ name }: Asked): StorageError =>
  new StorageError('unavailable', `snapshot ${name} is still being indexed; try again`, {
    resource: `snapshot ${name}`,
  });

const lost = (cause: StorageError): StorageError =>
  new StorageError('failed_precondition', `${cause.message}; do a full backup from a new snapshot`, { cause });
