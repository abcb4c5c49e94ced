import { Controller } from '@nestjs/common';
import type { ReplyOf } from '#admin/contract/route';
import { type StorageHostDetailReply, type StorageHostReply, storageHostRoutes } from '#admin/contract/storage-hosts';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { notFound } from '#admin/requests/change';
import { Serves } from '#admin/requests/serves';
import { type StorageHostView, WorkerDirectory } from '#operations/workers/worker-directory';
import { Database } from '#platform/database/database';
import { BackendRegistrations } from '#storage/backends/backend-registrations';
import { type HostPool, poolsOfHost } from '#storage/backends/host-pools';
import { auditWrite } from '#tenancy/audit-log/audit-log';

@Controller()
export class StorageHostsController {
  constructor(
    private readonly database: Database,
    private readonly directory: WorkerDirectory,
    private readonly backends: BackendRegistrations,
  ) {}

  @Serves(storageHostRoutes.list)
  async list(): Promise<ReplyOf<typeof storageHostRoutes.list>> {
    return { items: (await this.directory.storageHosts()).map(shown) };
  }

  @Serves(storageHostRoutes.get)
  async get(@Call() call: AdminCall<typeof storageHostRoutes.get>): Promise<StorageHostDetailReply> {
    const hosts = await this.directory.storageHosts();
    return this.detail(
      call,
      hosts.find(({ name }) => name === call.params.storageHost),
    );
  }

  @Serves(storageHostRoutes.change)
  async change(@Call() call: AdminCall<typeof storageHostRoutes.change>): Promise<StorageHostDetailReply> {
    const { actor, principal, params, body } = call;
    const { draining, reason = null } = body;
    const change = { draining, reason, by: call.actorName, tenantId: principal.tenantId };
    const changed = await this.directory.drainStorageHost(params.storageHost, change, before =>
      auditWrite(actor, {
        tenantId: principal.tenantId,
        tenantName: principal.tenant,
        action: draining ? 'storage_host.drain' : 'storage_host.undrain',
        subject: { kind: 'storage_host', id: params.storageHost, name: params.storageHost },
        before: { draining: before.draining !== null, reason: before.draining?.reason ?? null },
        after: { draining, reason: draining ? reason : null },
        ...(reason === null ? {} : { reason }),
      }),
    );
    return this.detail(call, changed);
  }

  private async detail(call: AdminCall, host: StorageHostView | undefined): Promise<StorageHostDetailReply> {
    if (!host) throw notFound(call);
    const pools = await poolsOfHost(this.database, this.backends.kinds, host.name);
    return { ...shown(host), has: pools.map(shownPool) };
  }
}

const shown = ({ seenAt, pools, foreign, absent, draining, ...host }: StorageHostView): StorageHostReply => ({
  ...host,
  draining: draining && { ...draining, since: draining.since.toISOString() },
  pools: pools.map(({ name, path }) => ({ name, path })),
  foreign: foreign.map(({ name, path, home }) => ({ name, path, home })),
  absent: absent.map(({ name, path }) => ({ name, path })),
  seenAt: seenAt.toISOString(),
});

const shownPool = ({ takenOver, ...pool }: HostPool): StorageHostDetailReply['has'][number] => ({
  ...pool,
  takenOver: takenOver && { ...takenOver, at: takenOver.at.toISOString() },
  todo: todoOf(pool),
});

const todoOf = ({ tenant, backend, pool, moves }: Omit<HostPool, 'takenOver'>): string =>
  moves === 'by_itself'
    ? 'its data lie in a cluster: it stays until another storage host has taken it over'
    : `move its disk to another storage host, then: trivet pool move ${pool} --tenant ${tenant} --backend ${backend} --to HOST`;
