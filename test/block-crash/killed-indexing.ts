import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHANGE_OPERATIONS } from '#changes/change-operations';
import { decodeChunk } from '#changes/chunk-codec';
import { handlersOf } from '#operations/definitions/define-operation';
import { failpointsOf } from '#test/failpoints/failpoints-of';
import { type DaemonProcess, TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const BLOCK = 4_096;
const SIZE = 64 * BLOCK;

/** Without a base: the list of what the target holds. */
interface Pair {
  base: string | undefined;
  target: string;
}

type Prepare = (appliance: TestAppliance, name: string) => Promise<Prepared>;

/** What a worker is killed in. */
interface Building {
  kind: 'changes.index' | 'changes.merge';
  prepare: Prepare;
  act: (prepared: Prepared) => Promise<Pair>;
  /** The look for what may be merged comes with the start of a worker, and then every ten seconds. */
  before?: true;
  /** Failpoints of the kind that this one meets. */
  reached: RegExp;
}

export const A_STEP: Building = {
  kind: 'changes.index',
  prepare: indexedBase,
  act: cutTarget,
  reached: /^[\w.]+:(?!list|allocated)/,
};
export const A_LIST: Building = {
  kind: 'changes.index',
  prepare: written,
  act: firstCut,
  reached: /^[\w.]+:(list|allocated)/,
};
export const ONE_OF_TWO: Building = {
  kind: 'changes.merge',
  prepare: threeCuts,
  act: dropMiddle,
  before: true,
  reached: /:/,
};

/**
 * SIGKILL of the worker at each point of what builds the change index. Nothing asks for it and nobody waits, so only what
 * is stored tells: the step between two snapshots holds exactly the blocks in which their images differ, once.
 */
export function describeKilledIndexing(what: string, { kind, prepare, act, before, reached }: Building): void {
  describe(`a worker that is killed in ${kind} while it builds ${what}`, () => {
    let appliance: TestAppliance;
    const handler = handlersOf(CHANGE_OPERATIONS, {} as never).find(one => one.kind === kind)!;
    // Points of errors and of steps in several portions are met by test/changes/crashes.spec.ts.
    const points = failpointsOf(handler).filter(
      point => reached.test(point) && !/:(undo:point|retry:after|(compare|list):(again|point))$/.test(point),
    );
    const prepared = new Map<string, Prepared>();
    let running: DaemonProcess | undefined;

    /** One that is to be killed at its start may find its work, and the point, before it says that it is ready. */
    const doomed = async (at: string): Promise<DaemonProcess> => {
      if (before) return appliance.startingWorker({ TRIVET_FAILPOINT: `${at}=kill@1` });
      const one = running ?? (await appliance.worker());
      await one.arm(`${at}=kill@1`);
      return one;
    };
    /** Merges nothing. */
    const calmWorker = () => appliance.worker({ TRIVET_INDEX_RETENTION_MS: '86400000' });
    const calmly = async <T>(work: () => Promise<T>): Promise<T> => {
      const calm = await calmWorker();
      try {
        return await work();
      } finally {
        await calm.stop('SIGKILL');
      }
    };

    beforeAll(async () => {
      appliance = await TestAppliance.create({
        backend: 'fake',
        block: 'xfs',
        env: { TRIVET_RECONCILE_MS: '150', TRIVET_INDEX_RETENTION_MS: '0' },
      });
      await appliance.gateway();
      const calm = await calmWorker();
      const pools = () => appliance.database.query("SELECT FROM trivet.pool WHERE state = 'up'");
      await until('the pool was looked at', async () => (await pools()).length > 0);
      await Promise.all(
        points.map(async (point, n) => {
          prepared.set(point, await prepare(appliance, `case${n}`));
        }),
      );
      await calm.stop('SIGKILL');
    });
    afterAll(() => appliance?.close());

    it.each(points)('%s', async point => {
      const early = before && (await calmly(() => act(prepared.get(point)!)));
      const armed = await doomed(point);
      const pair = early || (await act(prepared.get(point)!));
      try {
        await until(`${point} is reached`, () => armed.exited);
        expect((await armed.ended()).signal).toBe('SIGKILL');
      } finally {
        running = undefined;
        await armed.stop('SIGKILL');
      }
      await appliance.database.query(
        `UPDATE trivet.operation SET dispatched_at = now() - interval '1 minute',
                lease_until = CASE state WHEN 'running' THEN now() ELSE lease_until END
          WHERE finished_at IS NULL AND dispatched_at IS NOT NULL`,
      );
      running = await appliance.worker();
      await until('the index is whole', () => isWhole(appliance, kind, pair), 30_000);
      expect(await stored(appliance, pair)).toEqual(differing(appliance, pair));
      await appliance.settled();
      if (before) await running.stop('SIGKILL');
    });

    it('leaves no chunk without its step, and no step half built', async () => {
      const left = await appliance.database.query(
        `SELECT 'chunk ' || no FROM trivet.change_chunk c
          WHERE NOT EXISTS (SELECT FROM trivet.change_step s WHERE s.id = c.step_id)
         UNION ALL SELECT state || ' ' || kind FROM trivet.change_step WHERE state <> 'ready'
         UNION ALL SELECT 'chunks of ' || id FROM trivet.change_step s
                    WHERE chunks <> (SELECT count(*) FROM trivet.change_chunk c WHERE c.step_id = s.id)`,
      );
      expect(left).toEqual([]);
    });
  });
}

async function written(appliance: TestAppliance, name: string) {
  const driver = appliance.driver();
  await driver.login();
  const volume = await driver.createVolume(name, SIZE);
  write(appliance, volume.id, [1, 2, 3, 40], 1);
  return { driver, name, volume, base: '', middle: '', target: '' };
}
type Prepared = Awaited<ReturnType<typeof written>>;

async function firstCut({ driver, name, volume }: Prepared): Promise<Pair> {
  return { base: undefined, target: (await driver.createSnapshot(volume.id, `${name}-1`)).id };
}

async function indexedBase(appliance: TestAppliance, name: string): Promise<Prepared> {
  const prepared = await written(appliance, name);
  const { driver, volume } = prepared;
  const base = await driver.createSnapshot(volume.id, `${name}-1`);
  await indexed(appliance, base.id);
  write(appliance, volume.id, [2, 41, 63], 2);
  return { ...prepared, base: base.id };
}

async function cutTarget({ driver, name, volume, base }: Prepared): Promise<Pair> {
  return { base, target: (await driver.createSnapshot(volume.id, `${name}-2`)).id };
}

async function threeCuts(appliance: TestAppliance, name: string): Promise<Prepared> {
  const prepared = await indexedBase(appliance, name);
  const { driver, volume } = prepared;
  const middle = await driver.createSnapshot(volume.id, `${name}-2`);
  write(appliance, volume.id, [3, 41, 50], 3);
  const target = await driver.createSnapshot(volume.id, `${name}-3`);
  for (const { id } of [middle, target]) await indexed(appliance, id);
  return { ...prepared, middle: middle.id, target: target.id };
}

async function dropMiddle({ driver, base, middle, target }: Prepared): Promise<Pair> {
  await driver.deleteSnapshot(middle);
  return { base, target };
}

/** One step from base to target, ready; and nothing of it under way. */
async function isWhole({ database }: TestAppliance, kind: string, pair: Pair): Promise<boolean> {
  const open = await database.query('SELECT FROM trivet.operation WHERE kind = $1 AND finished_at IS NULL', [kind]);
  return open.length === 0 && (await stepsOf(database, pair)).length === 1;
}

const stepsOf = (database: TestAppliance['database'], { base, target }: Pair) =>
  database.query<{ id: string }>(
    `SELECT s.id FROM trivet.change_step s
       JOIN trivet.snapshot t ON t.id = $2 AND t.cut = s.to_cut AND t.volume_id = s.volume_id AND t.index_state = 'indexed'
       LEFT JOIN trivet.snapshot b ON b.id = $1
      WHERE s.state = 'ready' AND s.kind = CASE WHEN $1::uuid IS NULL THEN 'allocated' ELSE 'delta' END
        AND s.from_cut = coalesce(b.cut, 0)`,
    [base ?? null, target],
  );

/** Numbers of the blocks that the step says, as often as it says them. */
async function stored({ database }: TestAppliance, pair: Pair): Promise<number[]> {
  const [step] = await stepsOf(database, pair);
  const chunks = await database.query<{ body: Buffer }>(
    'SELECT body FROM trivet.change_chunk WHERE step_id = $1 ORDER BY no',
    [step!.id],
  );
  const blocks: number[] = [];
  for (const { body } of chunks) {
    const { count, offsets, lengths } = decodeChunk(body);
    for (let n = 0; n < count; n++)
      for (let at = 0; at < lengths[n]!; at += BLOCK) blocks.push((offsets[n]! + at) / BLOCK);
  }
  return blocks;
}

function differing(appliance: TestAppliance, { base, target }: Pair): number[] {
  const a = base ? readFileSync(imageOf(appliance, 'snapshots', base)) : Buffer.alloc(SIZE);
  const b = readFileSync(imageOf(appliance, 'snapshots', target));
  const blocks = Array.from({ length: SIZE / BLOCK }, (_, n) => n);
  return blocks.filter(n => a.compare(b, n * BLOCK, (n + 1) * BLOCK, n * BLOCK, (n + 1) * BLOCK) !== 0);
}

function write(appliance: TestAppliance, volumeId: string, blocks: readonly number[], value: number): void {
  const fd = openSync(imageOf(appliance, 'volumes', volumeId), 'r+');
  for (const block of blocks) writeSync(fd, Buffer.alloc(BLOCK, value), 0, BLOCK, block * BLOCK);
  closeSync(fd);
}

function imageOf({ poolPath }: TestAppliance, kind: 'volumes' | 'snapshots', id: string): string {
  const entries = readdirSync(poolPath, { recursive: true }) as string[];
  return join(poolPath, entries.find(entry => entry.endsWith(id) && entry.startsWith(kind))!);
}

const indexed = ({ database }: TestAppliance, id: string): Promise<boolean> =>
  until(
    'it is indexed',
    async () =>
      (await database.query(`SELECT FROM trivet.snapshot WHERE id = $1 AND index_state = 'indexed'`, [id])).length ===
      1,
  );
