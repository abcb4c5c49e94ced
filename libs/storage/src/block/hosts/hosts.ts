import { isDeepStrictEqual } from 'node:util';
import { noting } from '#operations/accepting/change-observer';
import { decodeSealed, encodeSealed } from '#platform/crypto/secrets';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import type { BlockDependencies } from '#storage/block/block-dependencies';
import type { BlockCaller, HostRequest, HostView, TenantCaller } from '#storage/block/block-storage';
import { requireFittingChap, requireOwnAccount } from '#storage/block/hosts/chap-rules';
import {
  chapPlace,
  findHost,
  type HostRow,
  hostView,
  insertHost,
  listHosts,
  lockHost,
  putChap,
  updateHost,
} from '#storage/block/hosts/host-store';
import { requireInitiatorsOfNoHost, requireInitiatorsOfNoPerson } from '#storage/block/hosts/initiator-rules';

/** Every target of the host says something else now than what was applied. */
const STALE = sql(
  'host_targets_stale',
  `UPDATE trivet.volume v SET applied_instance = NULL, export_version = export_version + 1
     FROM trivet.publication p
    WHERE p.tenant_id = $1 AND p.host_id = $2 AND v.tenant_id = p.tenant_id AND v.id = p.volume_id`,
);
const PUBLISHED = sql(
  'host_published',
  'SELECT count(*)::int AS n FROM trivet.publication WHERE tenant_id = $1 AND host_id = $2',
);
const DELETE = sql('host_delete', 'DELETE FROM trivet.host WHERE tenant_id = $1 AND id = $2');

/** Who may be given volumes. The driver posts its host before every publish, from many nodes at once. */
export class Hosts {
  /** @param applied ends when the targets of the host are as its row says */
  constructor(
    private readonly parts: BlockDependencies,
    private readonly applied: (caller: BlockCaller, hostId: string) => Promise<void>,
  ) {}

  async put(caller: BlockCaller, request: HostRequest): Promise<HostView> {
    const { tenantId } = caller;
    const id = await this.parts.database.withTenant(tenantId, async tx => {
      const known = await lockHost(tx, tenantId, request.uuid);
      if (known) return this.replace(tx, caller, known, request);
      await requireInitiatorsOfNoPerson(tx, tenantId, request);
      const made = await this.insert(tx, caller, request, false);
      if (made !== undefined) return made;
      return this.replace(tx, caller, (await lockHost(tx, tenantId, request.uuid))!, request);
    });
    // Also what an earlier call changed and did not live to apply.
    await this.applied(caller, id);
    return { ...hostView({ ...rowOf(request), id }) };
  }

  async add({ tenantId, observer }: TenantCaller, wanted: Omit<HostRequest, 'uuid'>): Promise<HostView> {
    const request = { ...wanted, uuid: uuidv7() };
    const id = await this.parts.database.withTenant(tenantId, async tx => {
      await requireInitiatorsOfNoHost(tx, tenantId, request);
      return this.insert(tx, { tenantId, observer }, request, true);
    });
    return hostView({ ...rowOf(request), id: id! });
  }

  /** Undefined: there is one of its uuid. */
  private async insert(
    tx: Tx,
    { tenantId, observer }: TenantCaller,
    request: HostRequest,
    byPerson: boolean,
  ): Promise<string | undefined> {
    await requireOwnAccount(tx, tenantId, request, this.passwordOf(tenantId));
    const id = uuidv7();
    if (!(await insertHost(tx, tenantId, { id, byPerson }, request))) return undefined;
    await putChap(tx, tenantId, id, this.sealed(tenantId, id, request));
    const after = hostView({ ...rowOf(request), id });
    await tx.commit(...noting(observer, { kind: 'host.create', resourceId: id, resourceName: request.name, after }));
    return id;
  }

  private async replace(
    tx: Tx,
    { tenantId, observer }: BlockCaller,
    known: HostRow,
    request: HostRequest,
  ): Promise<string> {
    const passwordOf = this.passwordOf(tenantId);
    const sameAccount =
      known.chapUser === (request.chap?.user ?? null) && passwordOf(known) === (request.chap?.password ?? null);
    const sameInitiators = sameSet(known.iqns, request.iqns);
    const [before, after] = [hostView(known), hostView({ ...rowOf(request), id: known.id })];
    if (sameAccount && isDeepStrictEqual(before, after)) return known.id;
    if (known.byPerson) throw isOfPerson(known);
    if (!sameInitiators) await requireInitiatorsOfNoPerson(tx, tenantId, request);
    if (!sameAccount) {
      await requireOwnAccount(tx, tenantId, request, passwordOf);
      await requireFittingChap(tx, tenantId, known, request.chap);
      await putChap(tx, tenantId, known.id, this.sealed(tenantId, known.id, request));
    }
    await updateHost(tx, tenantId, known.id, request);
    if (!sameAccount || !sameInitiators) await tx.query(STALE, [tenantId, known.id]);
    const seen = { before, after: sameAccount ? after : { ...after, changed: 'its CHAP account' } };
    const change = { kind: 'host.change', resourceId: known.id, resourceName: request.name, ...seen };
    await tx.commit(...noting(observer, change));
    return known.id;
  }

  private passwordOf(tenantId: string) {
    return ({ id, sealed }: HostRow): string | null =>
      sealed && this.parts.secrets.openText(decodeSealed(sealed), chapPlace(tenantId, id));
  }

  private sealed(tenantId: string, id: string, { chap }: HostRequest): Buffer | undefined {
    return chap && encodeSealed(this.parts.secrets.seal(chap.password, chapPlace(tenantId, id)));
  }

  async get({ tenantId }: BlockCaller, hostId: string): Promise<HostView> {
    const row = await this.parts.database.withTenant(tenantId, tx => findHost(tx, tenantId, hostId));
    if (!row) throw hostNotFound(hostId);
    return hostView(row);
  }

  async list({ tenantId }: BlockCaller, { uuid }: { uuid?: string }): Promise<HostView[]> {
    const rows = await this.parts.database.withTenant(tenantId, tx => listHosts(tx, tenantId, uuid));
    return rows.map(hostView);
  }

  async delete({ tenantId, observer }: TenantCaller, hostId: string): Promise<void> {
    await this.parts.database.withTenant(tenantId, async tx => {
      await observer?.before?.(tx);
      const found = await findHost(tx, tenantId, hostId);
      const row = found && (await lockHost(tx, tenantId, found.uuid));
      if (!row) throw hostNotFound(hostId);
      const [{ n }] = (await tx.query<{ n: number }>(PUBLISHED, [tenantId, row.id])) as [{ n: number }];
      if (n > 0)
        throw new StorageError(
          'failed_precondition',
          `host ${row.name} has ${n} published volumes: unpublish them first`,
          {
            field: 'published',
          },
        );
      await putChap(tx, tenantId, row.id, undefined);
      await tx.query(DELETE, [tenantId, row.id]);
      await tx.commit(
        ...noting(observer, { kind: 'host.delete', resourceId: row.id, resourceName: row.name, before: hostView(row) }),
      );
    });
  }
}

const isOfPerson = ({ name }: HostRow): StorageError =>
  new StorageError('already_exists', `host ${name} was made known by a person, and no driver changes it`, {
    field: 'uuid',
  });

const hostNotFound = (id: string) => new StorageError('not_found', `Host with id ${id} not found.`);

const rowOf = (request: HostRequest): Omit<HostRow, 'id'> => ({
  uuid: request.uuid,
  name: request.name,
  iqns: [...request.iqns],
  wwpns: [...request.wwpns],
  nqns: [...request.nqns],
  networks: [...request.networks],
  chapUser: request.chap?.user ?? null,
  accessProtocol: request.accessProtocol ?? null,
  virtualDomain: request.virtualDomain ?? null,
  byPerson: false,
  sealed: null,
});

const sameSet = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && new Set([...a, ...b]).size === new Set(a).size;
