import { Controller, Inject } from '@nestjs/common';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { Change, notFound } from '#admin/change';
import { publicationRoutes } from '#admin/contract/volumes';
import { answerPage } from '#admin/paging';
import type { Resources } from '#admin/resources';
import { Serves } from '#admin/serves';
import type { Tx } from '#platform/database';
import { type ListedPublication, listPublications, readPublication } from '#storage/publications/publication-list';
import { LUN } from '#storage/publications/target-identity';

@Controller()
export class PublicationsController {
  private readonly resources: Resources;

  constructor(@Inject(ADMIN_OPTIONS) { resources }: AdminOptions) {
    this.resources = resources;
  }

  @Serves(publicationRoutes.list)
  list(@Call() call: AdminCall<typeof publicationRoutes.list>) {
    const { volume, host } = call.query;
    const filter = {
      ...(volume === undefined ? {} : { volumeId: volume }),
      ...(host === undefined ? {} : { hostId: host }),
    };
    return answerPage(call, page => listPublications(this.resources.database, call.tenant.id, filter, page), shown);
  }

  @Serves(publicationRoutes.delete)
  async delete(@Call() call: AdminCall<typeof publicationRoutes.delete>): Promise<void> {
    const { id: tenantId } = call.tenant;
    const find = (tx: Tx) => readPublication(tx, tenantId, call.params.publication);
    const publication = await this.resources.database.withTenant(tenantId, find);
    if (!publication) throw notFound(call);
    const read = async (tx: Tx) => {
      const row = await find(tx);
      return row && { id: row.id, version: row.state, view: shown(row) };
    };
    const change = new Change(call, { action: 'publication.delete', read, joins: true });
    const caller = change.caller(publication);
    const { volumeId, hostId } = publication;
    await change.carryOut(caller, () => this.resources.blockStorage.unpublish(caller, volumeId, hostId));
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
