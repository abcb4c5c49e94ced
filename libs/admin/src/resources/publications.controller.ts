import { Controller, Inject } from '@nestjs/common';
import { type PublicationReply, publicationRoutes } from '#admin/contract/hosts';
import { Refusal } from '#admin/problems/problems';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Change, notFound } from '#admin/requests/change';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { Database, type Tx } from '#platform/database/database';
import { StorageError } from '#platform/errors';
import { BLOCK_STORAGE } from '#storage/block/block.module';
import type { BlockStorage, PublicationView } from '#storage/block/block-storage';
import { readHost } from '#storage/block/hosts/host-list';
import {
  type ListedPublication,
  listPublications,
  readPublication,
} from '#storage/block/publications/publication-list';
import { LUN } from '#storage/block/publications/target-identity';
import { readVolume } from '#storage/block/volumes/volume-list';

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

  @Serves(publicationRoutes.get)
  async get(@Call() call: AdminCall<typeof publicationRoutes.get>): Promise<PublicationReply> {
    return shown(await this.read(call, call.params.publication));
  }

  @Serves(publicationRoutes.create)
  async create(@Call() call: AdminCall<typeof publicationRoutes.create>) {
    const { id: tenantId, name: tenant } = call.tenant;
    const [volume, host] = await this.database.withTenant(tenantId, async tx => [
      await readVolume(tx, tenantId, call.body.volume),
      await readHost(tx, tenantId, call.body.host),
    ]);
    if (!volume) throw isNot(call, 'volume');
    if (!host) throw isNot(call, 'host');
    const after = { volume: volume.name, host: host.name };
    const change = new Change(call, {
      action: 'publication.create',
      after,
      fields: { host: 'host', published: 'volume' },
    });
    const caller = change.caller(volume);
    let chap: PublicationView['chap'];
    await change.carryOut(async () => {
      const request = { host: host.uuid, accessProtocol: 'iscsi' } as const;
      const submitted = await this.blockStorage.publications.publish(caller, volume.id, request);
      // A driver's node alone is told the password that its driver gave it.
      if (host.byPerson) chap = submitted.value.chap;
      return submitted;
    });
    // Drivers find what is so already; a person is told.
    if (!change.noted)
      throw new StorageError('already_exists', `volume ${volume.name} is published to host ${host.name} already`);
    const made = await this.read(call, change.noted.resourceId);
    if (made.state === 'applied') call.giveLocation(`/tenants/${tenant}/publications/${made.id}`);
    return { ...shown(made), chap: chap ?? null };
  }

  @Serves(publicationRoutes.delete)
  async delete(@Call() call: AdminCall<typeof publicationRoutes.delete>): Promise<void> {
    const { id: tenantId } = call.tenant;
    const find = (tx: Tx) => readPublication(tx, tenantId, call.params.publication);
    const publication = await this.read(call, call.params.publication);
    const read = async (tx: Tx) => {
      const row = await find(tx);
      return row && { id: row.id, version: row.state, view: shown(row) };
    };
    const change = new Change(call, { action: 'publication.delete', read, joins: true });
    const caller = change.caller(publication);
    const { volumeId, hostUuid } = publication;
    await change.carryOut(() => this.blockStorage.publications.unpublish(caller, volumeId, hostUuid));
  }

  private async read(call: AdminCall, id: string): Promise<ListedPublication> {
    const { id: tenantId } = call.tenant;
    const row = await this.database.withTenant(tenantId, tx => readPublication(tx, tenantId, id));
    if (!row) throw notFound(call);
    return row;
  }
}

function isNot({ body }: AdminCall<typeof publicationRoutes.create>, kind: 'volume' | 'host'): Refusal {
  const message = `there is no ${kind} ${body[kind]}`;
  return new Refusal('not_found', message, [{ pointer: `/body/${kind}`, message }]);
}

const shown = (row: ListedPublication): PublicationReply => ({
  id: row.id,
  volume: { id: row.volumeId, name: row.volumeName },
  host: { id: row.hostId, name: row.hostName },
  accessProtocol: row.accessProtocol,
  state: row.state,
  // Until it is applied no host finds it there.
  target: row.state === 'wanted' ? null : row.targetName,
  lun: row.state === 'wanted' ? null : LUN,
  serialNumber: row.serialNumber,
  portals: row.state === 'wanted' ? [] : [...row.portals],
  createdAt: row.createdAt.toISOString(),
});
