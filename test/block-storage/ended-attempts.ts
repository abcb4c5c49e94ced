import { expect, vi } from 'vitest';
import type { Handler } from '#operations/definitions/handler';
import { StorageError } from '#platform/errors';
import type { BlockHouse } from '#test/block-storage/block-house';
import { ImageContent } from '#test/block-storage/image-content';
import { armFailpoints, disarmFailpoints } from '#test/failpoints/failpoints';
import { failpointsOf } from '#test/failpoints/failpoints-of';

/**
 * An attempt that ends at each of its points, and the one after it, which begins at the first step. Here the attempt ends
 * by an error; test/crash kills the process at the same points.
 */
export class EndedAttempts {
  readonly content: ImageContent;

  constructor(readonly house: BlockHouse) {
    this.content = new ImageContent(house);
  }

  endAt(point: string): void {
    armFailpoints(`${point}=error@1`);
  }

  reset(): void {
    disarmFailpoints();
    vi.restoreAllMocks();
  }

  query<Row = Record<string, unknown>>(text: string, params: unknown[] = []): Promise<Row[]> {
    return this.house.testDatabase.query<Row>(text, params);
  }

  /** After `end:before` the operation ends in the database whatever becomes of the attempt. */
  async expectEnd(resourceId: string, kind: string, point: string): Promise<void> {
    const rows = await this.query('SELECT attempt, state FROM trivet.operation WHERE resource_id = $1 AND kind = $2', [
      resourceId,
      kind,
    ]);
    expect(rows).toEqual([{ attempt: point.endsWith('end:after') ? 1 : 2, state: 'succeeded' }]);
  }

  async clean(): Promise<void> {
    await this.house.settled();
    expect((await this.house.images()).filter(({ kind }) => kind === 'temporary')).toEqual([]);
    expect(await this.query('SELECT FROM trivet.operation_slot')).toEqual([]);
  }

  /** The image got its name, and then the pool says that no repeat will help. */
  failAfterCommit(nth: number): void {
    const { volumes } = this.house.store;
    const commit = volumes.commit.bind(volumes);
    let calls = 0;
    vi.spyOn(volumes, 'commit').mockImplementation(async (...args) => {
      await commit(...args);
      if (++calls % nth === 0) throw new StorageError('resource_exhausted', 'insufficient storage space');
    });
  }

  async expectNothingOf(volumeIds: readonly string[]): Promise<void> {
    await this.clean();
    const rows = await this.query<{ id: string; state: string }>(
      'SELECT id, state FROM trivet.snapshot WHERE volume_id = ANY ($1)',
      [volumeIds],
    );
    expect(rows.length).toBeGreaterThan(0);
    for (const { id, state } of rows) {
      expect(state).toBe('gone');
      expect(await this.content.inspect('snapshot', id)).toEqual({ state: 'absent' });
    }
  }
}

/** Needs no backend to know them. */
export const pointsOf = (handler: unknown, ...without: string[]): string[] =>
  failpointsOf(handler as Handler).filter(point => !without.some(part => point.includes(part)));

/** '' for no interruption at all. */
export const undoingPointsOf = (handler: unknown): string[] => [
  '',
  ...pointsOf(handler).filter(point => /:(undo|remove|discardStages)/.test(point)),
];

/** The caller may be told of the failed attempt, and asks again. */
export async function untilDone<T>(call: () => Promise<T>): Promise<T> {
  for (;;)
    try {
      return await call();
    } catch (error) {
      if ((error as { retry?: string }).retry !== 'later') throw error;
    }
}

/** A deletion whose repeat finds nothing is done. */
export async function untilGone(call: () => Promise<void>): Promise<void> {
  await untilDone(call).catch(error => {
    expect(error).toMatchObject({ kind: 'not_found' });
  });
}
