import { requireSuccess, type Submitted, shownAfter } from '#operations/accepting/operations';
import { StorageError } from '#platform/errors';
import { isUuid, uuidv7 } from '#platform/uuid';
import type { BlockDependencies } from '#storage/block/block-dependencies';
import type { BlockCaller, SnapshotRequest, SnapshotView } from '#storage/block/block-storage';
import { beginSnapshot } from '#storage/block/snapshots/begin-snapshot';
import { beginDeletion, requireDeletable } from '#storage/block/snapshots/delete-snapshot';
import {
  findSnapshot,
  holdingSnapshot,
  lockSnapshot,
  START,
  snapshotNamed,
  snapshotNotFound,
  snapshotPage,
  snapshotView,
} from '#storage/block/snapshots/snapshot-store';

const PAGE = 500;

/** Snapshots from their cut to their deletion: what is accepted, and what is answered without an operation. */
export class Snapshots {
  constructor(private readonly parts: BlockDependencies) {}

  async *list(
    caller: BlockCaller,
    { volumeId, name, holding = false }: { volumeId?: string; name?: string; holding?: boolean },
  ): AsyncIterable<SnapshotView[]> {
    const { database } = this.parts;
    if (volumeId !== undefined && !isUuid(volumeId)) return;
    if (volumeId !== undefined && name !== undefined) {
      const row = await snapshotNamed(database, caller, volumeId, name);
      if (row) yield [snapshotView(row)];
      return;
    }
    if (holding) {
      const row = await holdingSnapshot(database, caller, volumeId);
      if (row) yield [snapshotView(row)];
      return;
    }
    for (let after = START; ; ) {
      const rows = await snapshotPage(database, caller, { volumeId, name }, after, PAGE);
      if (rows.length > 0) yield rows.map(snapshotView);
      if (rows.length < PAGE) return;
      after = { volumeId: rows.at(-1)!.volumeId, cut: rows.at(-1)!.cut! };
    }
  }

  /** Hidden ones too: they are there to be cloned. What is not cut yet is shown as not ready. */
  async get(caller: BlockCaller, snapshotId: string): Promise<SnapshotView> {
    const row = await findSnapshot(this.parts.database, caller, { id: snapshotId });
    if (!row || row.state === 'deleting') throw snapshotNotFound(snapshotId);
    return snapshotView(row);
  }

  async create(caller: BlockCaller, request: SnapshotRequest): Promise<Submitted<SnapshotView>> {
    const { volumeId, name } = request;
    const found = await findSnapshot(this.parts.database, caller, { volumeId, name });
    if (found?.state === 'ready' && !found.condition) return { value: snapshotView(found) };
    const resource = `snapshot ${name}`;
    const { value: id, operation } = await this.parts.operations.submit(caller, async (tx, begin, operationId) => {
      const { tenantId, backendId } = caller;
      const made = await beginSnapshot(tx, begin, { tenantId, backendId, operationId }, { ...request, id: uuidv7() });
      return { value: made.id, join: made.join };
    });
    requireSuccess(operation, resource);
    return shownAfter(operation, async () => {
      const row = await findSnapshot(this.parts.database, caller, { id });
      if (row?.state !== 'ready')
        throw new StorageError('aborted', `${resource} was deleted meanwhile; try again`, { resource });
      return snapshotView(row);
    });
  }

  async delete(caller: BlockCaller, snapshotId: string): Promise<Submitted<void>> {
    const { tenantId } = caller;
    const submitted = await this.parts.operations.submit(caller, async (tx, begin, operationId) => {
      const row = await lockSnapshot(tx, caller, { id: snapshotId });
      if (!row) throw snapshotNotFound(snapshotId);
      if (row.state === 'deleting') return { value: undefined, join: row.activeOperation ?? undefined };
      if (row.state === 'creating' && row.snapshotGroupId !== null)
        throw new StorageError('aborted', `snapshot ${row.name} is being made with its group; try again`, {
          resource: `snapshot ${row.name}`,
        });
      await requireDeletable(tx, tenantId, [row]);
      await beginDeletion(tx, begin, { tenantId, operationId }, row);
      return { value: undefined };
    });
    requireSuccess(submitted.operation, `snapshot ${snapshotId}`);
    return submitted;
  }
}
