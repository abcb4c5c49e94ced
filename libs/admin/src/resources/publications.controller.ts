import { Controller, Inject } from '@nestjs/common';
import { publicationRoutes } from '#admin/contract/volumes';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Change, notFound } from '#admin/requests/change';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { Database, type Tx } from '#platform/database/database';
import { BLOCK_STORAGE } from '#storage/block/block.module';
import type { BlockStorage } from '#storage/block/block-storage';
import {
  type ListedPublication,
  listPublications,
  readPublication,
} from '#storage/block/publications/publication-list';
import { LUN } from '#storage/block/publications/target-identity';

@Controller()
export class PublicationsController {
  constructor(
    private readonly database: Database,
    @Inject(BLOCK_STORAGE) private readonly blockStorage: BlockStorage,
  ) {}

  @Serves(publicationRoutes.list)
  list(@Call() call: AdminCall<typeof publicationRoutes.list>) {
    const { volume, host } = call.query;
    const filter = {
      ...(volume === undefined ? {} : { volumeId: volume }),
      ...(host === undefined ? {} : { hostId: host }),
    };
    return answerPage(call, page => listPublications(this.database, call.tenant.id, filter, page), shown);
  }

  @Serves(publicationRoutes.delete)
  async delete(@Call() call: AdminCall<typeof publicationRoutes.delete>): Promise<void> {
    const { id: tenantId } = call.tenant;
    const find = (tx: Tx) => readPublication(tx, tenantId, call.params.publication);
    const publication = await this.database.withTenant(tenantId, find);
    if (!publication) throw notFound(call);
    const read = async (tx: Tx) => {
      const row = await find(tx);
      return row && { id: row.id, version: row.state, view: shown(row) };
    };
    const change = new Change(call, { action: 'publication.delete', read, joins: true });
    const caller = change.caller(publication);
    const { volumeId, hostId } = publication;
    await change.carryOut(() => this.blockStorage.publications.unpublish(caller, volumeId, hostId));
  }
}

const shown = (row: ListedPublication) => ({
  id: row.id,
  volume: { id: row.volumeId, name: row.volumeName },
  host: { id: row.hostId, name: row.hostName },
  accessProtocol: row.accessProtocol,
  state: row.state,
  // Until it is applied no host finds it there.
  target: row.state === 'wanted' ? null : row.targetName,
  lun: row.state === 'wanted' ? null : LUN,
  createdAt: row.createdAt.toISOString(),
});
