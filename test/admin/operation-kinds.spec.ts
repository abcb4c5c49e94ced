import { expect, it } from 'vitest';
import { CHANGE_OPERATIONS } from '#changes/change-operations';
import { handlersOf } from '#operations/definitions/define-operation';
import { OperationKinds } from '#operations/definitions/operation-kinds';
import { BLOCK_OPERATIONS } from '#storage/block/block-operations';
import { BULK_OPERATIONS } from '#storage/bulk/run-bulk';
import { OBJECT_OPERATIONS } from '#storage/object/object-operations';
import { GIVEN_UP } from '#test/admin/given-up';

/** As a gateway has them: over directories that nobody opens. */
const handlers = handlersOf(
  [...OBJECT_OPERATIONS, ...BLOCK_OPERATIONS, ...CHANGE_OPERATIONS, ...BULK_OPERATIONS],
  {} as never,
);

it.each(handlers.map(handler => [handler.kind, handler] as const))(
  '%s says what becomes of its resource when a person gives it up',
  (_, handler) => {
    expect(handler.fail !== undefined || handler.giveUp?.write !== undefined).toBe(true);
  },
);

it('each that says so itself is given up in a test beside a worker', () => {
  const kinds = handlers.filter(handler => handler.giveUp !== undefined).map(({ kind }) => kind);
  // That one has a test of its own there.
  expect([...Object.keys(GIVEN_UP), 'volume.delete'].sort()).toEqual(kinds.sort());
});

it('only what is undone step by step can be cancelled', () => {
  expect(new OperationKinds(handlers).undoable().sort()).toEqual([
    'access.grant',
    'access.rotate',
    'bucket.create',
    'bulk.run',
    'snapshot.create',
    'snapshot_group.create',
    'volume.clone',
    'volume.create',
    'volume.publish',
  ]);
});

it('knows kinds by their part before the dot, and by nothing less', () => {
  const kinds = new OperationKinds(handlers);
  expect(kinds.named('bucket')).toEqual(['bucket.create', 'bucket.delete', 'bucket.release']);
  expect(kinds.named('snapshot')).not.toContain('snapshot_group.create');
  expect(kinds.named('buck')).toEqual([]);
  expect(kinds.get('bucket.create')!.steps).toEqual(['inspect', 'create', 'configure']);
});
