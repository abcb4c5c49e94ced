import { Controller, Inject } from '@nestjs/common';
import { type AccessKeyReply, accessRoutes } from '#admin/contract/buckets';
import { Refusal } from '#admin/problems/problems';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Change, notFound } from '#admin/requests/change';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { Database, type Tx } from '#platform/database/database';
import { StorageError } from '#platform/errors';
import { type ListedAccess, listAccesses, readAccess } from '#storage/object/accesses/access-list';
import { readBucket } from '#storage/object/buckets/bucket-list';
import { OBJECT_STORAGE } from '#storage/object/object.module';
import type { AccessView, ObjectStorage } from '#storage/object/object-storage';
import { placeOfBackend } from '#storage/object/places';
import { audit } from '#tenancy/audit-log/audit-log';

/** The domain's fields, by those of a body that say them. */
const FIELDS: Readonly<Record<string, string>> = {
  name: 'name',
  protocols: 'protocol',
  buckets: 'buckets',
  rotation: 'rotation',
};
const GRANT_FIELDS = {
  protocol: 'protocol',
  authentication: 'protocol',
  buckets: 'buckets',
  modes: 'buckets',
  rotation: 'rotation',
  expiry: 'expiry',
};

@Controller()
export class AccessesController {
  constructor(
    private readonly database: Database,
    @Inject(OBJECT_STORAGE) private readonly objectStorage: ObjectStorage,
  ) {}

  @Serves(accessRoutes.list)
  list(@Call() call: AdminCall<typeof accessRoutes.list>) {
    const { bucket, ...rest } = call.query;
    const filter = { ...rest, ...(bucket === undefined ? {} : { bucketId: bucket }) };
    return answerPage(call, page => listAccesses(this.database, call.tenant.id, filter, page), shown);
  }

  @Serves(accessRoutes.get)
  async get(@Call() call: AdminCall<typeof accessRoutes.get>) {
    const row = await this.read(call, call.params.access);
    call.giveEtag(row);
    return shown(row);
  }

  @Serves(accessRoutes.issue)
  async issue(@Call() call: AdminCall<typeof accessRoutes.issue>) {
    const { name, rotation } = call.body;
    const change = new Change(call, { action: 'access.issue', after: call.body, fields: FIELDS });
    let key: AccessKeyReply | undefined;
    await change.carryOut(async () => {
      const { place, buckets } = await this.bucketsOf(call);
      const protocol = call.body.protocol ?? place.kind.protocols[0]!;
      const caller = { ...change.caller(place), place };
      const request = { name, protocol, buckets, fields: GRANT_FIELDS, ...(rotation ? { rotation } : {}) };
      const granted = await this.objectStorage.accesses.issue(caller, request);
      key = keyShown(granted.value, protocol);
      return granted;
    });
    if (!change.noted)
      throw new StorageError('already_exists', `there is an access ${name} already: readAccessKey shows its key`, {
        field: 'name',
      });
    const made = await this.read(call, change.noted.resourceId);
    if (made.state !== 'granting') call.giveLocation(`/tenants/${call.tenant.name}/accesses/${made.id}`);
    call.giveEtag(made);
    return { ...shown(made), key: key ?? null };
  }

  /** The entry is there before anybody is shown anything. */
  @Serves(accessRoutes.key)
  async key(@Call() call: AdminCall<typeof accessRoutes.key>): Promise<AccessKeyReply> {
    const { tenant } = call;
    const { id, name, backendId, protocol } = await this.read(call, call.params.access);
    const place = await placeOfBackend(this.database, tenant.id, backendId);
    const revealed = await this.objectStorage.accesses.reveal(place, { id, name });
    const entry = {
      tenantId: tenant.id,
      tenantName: tenant.name,
      action: 'access.reveal',
      subject: { kind: 'access', id, name },
      reason: call.body.reason,
    };
    await this.database.withTenant(tenant.id, tx => audit(tx, call.actor, entry));
    return keyShown(revealed, protocol);
  }

  @Serves(accessRoutes.revoke)
  async revoke(@Call() call: AdminCall<typeof accessRoutes.revoke>): Promise<void> {
    const { id: tenantId } = call.tenant;
    const access = await this.read(call, call.params.access);
    const read = async (tx: Tx) => {
      const row = await readAccess(tx, tenantId, access.id);
      return row && { ...row, view: shown(row) };
    };
    const change = new Change(call, { action: 'access.revoke', read, reason: call.body.reason, joins: true });
    const caller = change.caller(access);
    await change.carryOut(() => this.objectStorage.accesses.remove(caller, access.accountId));
  }

  @Serves(accessRoutes.rotate)
  async rotate(@Call() call: AdminCall<typeof accessRoutes.rotate>) {
    const { id: tenantId } = call.tenant;
    const { reason, graceSeconds } = call.body;
    const access = await this.read(call, call.params.access);
    const read = async (tx: Tx) => {
      const row = await readAccess(tx, tenantId, access.id);
      return row && { ...row, view: shown(row) };
    };
    const change = new Change(call, { action: 'access.rotate', read, after: { graceSeconds }, reason, joins: true });
    const caller = change.caller(access);
    await change.carryOut(() => this.objectStorage.accesses.rotate(caller, access.accountId, graceSeconds));
    return shown(await this.read(call, access.id));
  }

  /** By their names there, and where they all are. */
  private async bucketsOf({ tenant, body }: AdminCall<typeof accessRoutes.issue>) {
    const buckets = await this.database.withTenant(tenant.id, async tx => {
      const found = [];
      for (const [at, { bucket, mode }] of body.buckets.entries()) {
        const row = await readBucket(tx, tenant.id, bucket);
        if (!row) throw noBucket(bucket, at);
        found.push({ id: row.id, bucketId: row.name, mode, backendId: row.backendId });
      }
      return found;
    });
    const [first] = buckets;
    const other = buckets.findIndex(({ backendId }) => backendId !== first!.backendId);
    if (other >= 0) throw otherBackend(other);
    const place = await placeOfBackend(this.database, tenant.id, first!.backendId);
    return { place, buckets: buckets.map(({ backendId: _, ...bucket }) => bucket) };
  }

  private async read(call: AdminCall, id: string): Promise<ListedAccess> {
    const { id: tenantId } = call.tenant;
    const row = await this.database.withTenant(tenantId, tx => readAccess(tx, tenantId, id));
    if (!row) throw notFound(call);
    return row;
  }
}

function noBucket(id: string, at: number): Refusal {
  const message = `there is no bucket ${id}`;
  return new Refusal('not_found', message, [{ pointer: `/body/buckets/${at}/bucket`, message }]);
}

function otherBackend(at: number): Refusal {
  const message = 'all buckets of an access are at one backend: issue one for each';
  return new Refusal('invalid_argument', message, [{ pointer: `/body/buckets/${at}/bucket`, message }]);
}

function keyShown({ credentials, buckets }: AccessView, protocol: AccessKeyReply['protocol']): AccessKeyReply {
  const { accessPoint } = buckets[0]!;
  const { accessKeyId, secretAccessKey, token = null, expiresAt = null } = credentials;
  const { endpoint, region, addressing, storageAccount = null, project = null } = accessPoint;
  const key = { protocol, accessKeyId, secretAccessKey, token, expiresAt };
  return { ...key, endpoint, region, addressing, storageAccount, project };
}

const shown = (row: ListedAccess) => ({
  id: row.id,
  name: row.name,
  backend: row.backend,
  accountId: row.accountId,
  state: row.state,
  stale: row.stale,
  issued: row.issued,
  grants: row.grants,
  formerKeyUntil: row.formerUntil?.toISOString() ?? null,
  rotatesAt: row.rotateAt?.toISOString() ?? null,
  expiresAt: row.expiresAt?.toISOString() ?? null,
  serviceAccount: row.serviceAccount,
  operation: row.activeOperation ?? row.keyOperation,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString(),
});
