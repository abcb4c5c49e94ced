import { type AccessMode, type Grant, KEYLESS, type ObjectBackendKind } from '#backends/object-backend';
import type { Caller } from '#operations/accepting/caller';
import { requireSuccess, type Submitted, shownAfter } from '#operations/accepting/operations';
import { encodeSealed } from '#platform/crypto/secrets';
import type { Tx } from '#platform/database/database';
import { invalid, StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { uuidv7 } from '#platform/uuid';
import {
  type AccessOwner,
  type AccessRow,
  countGrants,
  type FoundAccess,
  findAccess,
  findAccessAt,
  grantedBuckets,
  insertAccess,
  lockAccess,
  lockAccount,
  resolveBuckets,
  servesAccesses,
  setAccessState,
  wantGrants,
} from '#storage/object/accesses/access-store';
import { NO_KEY } from '#storage/object/accesses/access-work';
import { grantAccess } from '#storage/object/accesses/grant-access';
import { beginRotation, type KeyState, readKeys } from '#storage/object/accesses/key-changes';
import { narrowAccess } from '#storage/object/accesses/narrow-access';
import { revokeAccess } from '#storage/object/accesses/revoke-access';
import { supported, view } from '#storage/object/buckets/buckets';
import { type EndpointCaller, type ObjectPlace, type PlacedCaller, requireServing } from '#storage/object/endpoint';
import type { ObjectDependencies } from '#storage/object/object-dependencies';
import type { AccessCalls, AccessView, GrantRequest } from '#storage/object/object-storage';
import { credentialsPlace, newCredentials, openCredentials } from '#storage/object/rights/credentials';
import {
  type AccessPlace,
  accessDifferences,
  type DesiredAccess,
  desiredAccess,
  fingerprint,
} from '#storage/shared/desired-state';

const log = createLogger('accesses');

export class Accesses implements AccessCalls {
  constructor(private readonly parts: ObjectDependencies) {}

  async grant(caller: EndpointCaller, request: GrantRequest): Promise<Submitted<AccessView>> {
    const { endpoint } = caller;
    const desired = this.desired(endpoint, request);
    const find = () => findAccess(this.parts.database, endpoint, request.name);
    const found = await find();
    requireServing(found?.serves);
    return this.accept(caller, endpoint, request, desired, { found, find });
  }

  async issue(caller: PlacedCaller, request: GrantRequest): Promise<Submitted<AccessView>> {
    const { place } = caller;
    const desired: DesiredAccess = { ...this.desired(place, request), issued: true };
    const find = () => findAccessAt(this.parts.database, place, request.name);
    return this.accept(caller, place, request, desired, { found: await find(), find });
  }

  async reveal(place: ObjectPlace, { id, name }: { id: string; name: string }): Promise<AccessView> {
    const resource = `access ${name}`;
    const found = await findAccessAt(this.parts.database, place, name);
    if (found?.id !== id) throw new StorageError('not_found', `there is no ${resource}`, { resource });
    if (!found.desired.issued)
      throw new StorageError(
        'failed_precondition',
        `${resource} was granted to a driver, which alone is told its key: issue an access of your own`,
        { resource },
      );
    if (found.state !== 'ready')
      throw new StorageError('aborted', `${resource} is being granted or revoked; try again`, { resource });
    return this.view(place, found.desired, { ...found, id });
  }

  private desired({ backendKind }: ObjectPlace, request: GrantRequest): DesiredAccess {
    const kind = this.parts.kindOf(backendKind);
    supported(kind, [request.protocol]);
    if (request.expiry && !kind.traits?.signs)
      throw invalid(
        request.fields.expiry,
        'keys of this backend do not end by themselves: leave it out, and have them changed by rotateAfter',
      );
    if (request.serviceAccount && request.rotation)
      throw invalid(request.fields.rotation, 'a service account has no key that could be changed: leave it out');
    const desired = desiredAccess(request.protocol, distinct(request.buckets), request);
    const most = kind.bucketsPerAccess ?? Number.POSITIVE_INFINITY;
    if (desired.buckets.length > most)
      throw new StorageError(
        'out_of_range',
        `one credential of this backend opens ${most} bucket and not ${desired.buckets.length}: ask for an access for each`,
        { field: 'buckets' },
      );
    return desired;
  }

  private async accept(
    caller: Caller,
    place: ObjectPlace,
    request: GrantRequest,
    desired: DesiredAccess,
    { found, find }: { found: FoundAccess | undefined; find(): Promise<FoundAccess | undefined> },
  ): Promise<Submitted<AccessView>> {
    const kind = this.parts.kindOf(place.backendKind);
    const print = fingerprint(desired);
    if (
      found?.id &&
      found.state === 'ready' &&
      found.activeOperation === null &&
      !found.stale &&
      found.fingerprint.equals(print)
    )
      return { value: this.view(place, desired, { ...found, id: found.id }) };

    const resource = `access ${request.name}`;
    /** What to do about an access that lives; undefined: it must be healed. */
    const living = (row: AccessRow): { value: undefined; join?: string } | undefined => {
      if (row.state === 'revoking')
        throw new StorageError('aborted', `${resource} is being revoked; try again when it is gone`, { resource });
      if (row.desired.issued !== desired.issued) throw otherDoor(resource, desired);
      if (!row.fingerprint.equals(print))
        throw otherRequest(resource, accessDifferences(row.desired, desired), request.fields);
      if (row.activeOperation) return { value: undefined, join: row.activeOperation };
      return row.stale ? undefined : { value: undefined };
    };
    const { operation } = await this.parts.operations.submit(caller, async (tx, begin, operationId) => {
      const row = await lockAccess(tx, place, request.name);
      const known = row && living(row);
      if (known) return known;

      const grants = await this.resolve(tx, place, kind, desired, { accessId: row?.id, asked: request.buckets });
      if (row && desired.issued) await requireSameBuckets(tx, place, row, grants);
      const bucketIds = grants.map(grant => grant.bucketId);
      const id = row?.id ?? uuidv7();
      if (row) await setAccessState(tx, place, id, 'granting', operationId);
      else {
        // One that the store issues is sealed when it is there, and a service account has none.
        const sealed =
          kind.traits?.issuesKeys || desired.serviceAccount
            ? null
            : encodeSealed(
                this.parts.secrets.seal(
                  JSON.stringify(newCredentials(kind.traits ?? {})),
                  credentialsPlace(place.tenantId, id),
                ),
              );
        const accountId = `${desired.serviceAccount ? KEYLESS : 'trivet-'}${id}`;
        const access = { id, name: request.name, accountId, desired, fingerprint: print, operationId, sealed };
        if (!(await insertAccess(tx, place, access))) {
          const winner = await lockAccess(tx, place, request.name);
          const joined = winner && living(winner);
          if (joined) return joined;
          throw new StorageError('aborted', `${resource} changed meanwhile; try again`, { resource });
        }
      }
      await wantGrants(tx, place, id, grants);
      await begin(grantAccess, {
        resourceId: id,
        resourceName: request.name,
        after: desired,
        request: {
          resources: bucketIds,
          heal: row !== undefined,
          keyless: desired.serviceAccount !== undefined,
          lastsSeconds: desired.expiry?.afterSeconds,
        },
      });
      return { value: undefined };
    });
    requireSuccess(operation, resource);
    return shownAfter(operation, async () => {
      const granted = await find();
      if (!granted?.id || granted.state !== 'ready' || !granted.fingerprint.equals(print))
        throw new StorageError('aborted', `${resource} was revoked meanwhile`, { resource });
      return this.view(place, desired, { ...granted, id: granted.id });
    });
  }

  revoke(caller: EndpointCaller, accountId: string, bucketNames?: readonly string[]): Promise<Submitted<void>> {
    return this.take(caller, accountId, bucketNames, {
      first: async tx => requireServing(await servesAccesses(tx, caller.endpoint)),
      passesOver: row => {
        if (row.desired.issued)
          log.warn({ access: row.name, account: accountId }, 'a driver may not revoke what was issued to a person');
        return row.desired.issued === true;
      },
    });
  }

  remove(caller: Caller, accountId: string): Promise<Submitted<void>> {
    return this.take(caller, accountId);
  }

  /**
   * Grant answers another key afterwards, and the one that was is let in for so long. Meanwhile there are two, and no third: who
   * asks again is refused until the first has ended, unless with no time for the second.
   */
  async rotate(caller: Caller, accountId: string, graceSeconds: number): Promise<Submitted<void>> {
    const { operation } = await this.parts.operations.submit<void>(caller, async (tx, begin, operationId) => {
      const row = await lockAccount(tx, caller, accountId);
      const resource = `account ${accountId}`;
      if (!row) throw new StorageError('not_found', `there is no ${resource}`, { resource });
      if (row.state !== 'ready')
        throw new StorageError('aborted', `${resource} is being granted or revoked; try again`, { resource });
      if (row.desired.serviceAccount)
        throw new StorageError('failed_precondition', `${resource} is of a service account, which has no key`, {
          resource,
        });
      const keys = await readKeys(tx, caller.tenantId, row.id);
      if (keys.operation !== null) {
        // Who asks for another grace would hear that it has what it asked for.
        if (keys.operationGrace === graceSeconds) return { value: undefined, join: keys.operation };
        throw otherChange(resource, keys);
      }
      if (keys.formerUntil !== null && !keys.formerEnds && graceSeconds > 0)
        throw new StorageError(
          'failed_precondition',
          `${resource} has a former key that is let in until ${keys.formerUntil.toISOString()}, and no room for a third: try again then, or with no grace, which ends it and the present one at once`,
          { resource, retry: 'later' },
        );
      if (keys.ended)
        throw new StorageError(
          'failed_precondition',
          `what ${resource} opens has ended at ${keys.ended.toISOString()}: there is nothing to change until the access is granted again`,
          { resource },
        );
      const kind = this.parts.kindOf(keys.backendKind);
      if (kind.traits?.signs && graceSeconds > 0) await requireRoomBeside(tx, caller, kind, row);
      const { tenantId, backendId } = caller;
      await beginRotation(tx, begin, { tenantId, backendId, operationId }, row, graceSeconds);
      return { value: undefined };
    });
    requireSuccess(operation, `account ${accountId}`);
    return { value: undefined, operation };
  }

  private async take(
    caller: Caller,
    accountId: string,
    bucketNames?: readonly string[],
    asker: { first?(tx: Tx): Promise<void>; passesOver?(row: AccessRow): boolean } = {},
  ): Promise<Submitted<void>> {
    const { value: again, operation } = await this.parts.operations.submit<'again' | undefined>(
      caller,
      async (tx, begin, operationId) => {
        const row = await lockAccount(tx, caller, accountId);
        if (!row || asker.passesOver?.(row)) return { value: undefined };
        if (row.state === 'revoking') return { value: undefined, join: row.activeOperation ?? undefined };
        const buckets = await grantedBuckets(tx, caller, row.id);
        const kept = bucketNames ? row.desired.buckets.filter(({ bucketId }) => !bucketNames.includes(bucketId)) : [];
        // None of the named buckets belongs to the account: it has lost them already.
        if (bucketNames && kept.length === row.desired.buckets.length && kept.length > 0) return { value: undefined };
        const whole = kept.length === 0;
        if (!whole && row.state !== 'ready')
          throw new StorageError('aborted', `account ${accountId} is still being granted`, { retry: 'later' });
        // One after the other: each takes its buckets from what the one before it left.
        if (!whole && row.activeOperation) return { value: 'again', join: row.activeOperation };
        const leaving = buckets.filter(({ name }) => whole || bucketNames?.includes(name)).map(({ id }) => id);
        const resources = whole ? buckets.map(({ id }) => id) : leaving;
        await setAccessState(tx, caller, row.id, whole ? 'revoking' : row.state, operationId);
        const subject = { resourceId: row.id, resourceName: row.name, before: row.desired };
        if (whole) await begin(revokeAccess, { ...subject, request: { resources } });
        else await begin(narrowAccess, { ...subject, request: { resources, leaving: [...bucketNames!] } });
        return { value: undefined };
      },
      asker.first,
    );
    requireSuccess(operation, `account ${accountId}`, { accepted: again === undefined });
    return again ? this.take(caller, accountId, bucketNames, asker) : { value: undefined, operation };
  }

  /** All-or-nothing: every bucket exists and its policy has room, or nothing is accepted. */
  private async resolve(
    tx: Tx,
    place: ObjectPlace,
    kind: ObjectBackendKind,
    desired: DesiredAccess,
    { accessId, asked }: { accessId: string | undefined; asked: GrantRequest['buckets'] },
  ) {
    const rows = await resolveBuckets(
      tx,
      place,
      desired.buckets.map(({ bucketId }) => bucketId),
    );
    if (kind.traits?.noWriteOnly && desired.buckets.some(({ mode }) => mode === 'write_only'))
      throw new StorageError(
        'invalid_argument',
        'write only cannot be had on a backend of this kind: who may write there may delete as well; ask for read and write, or for another class',
        { field: 'buckets' },
      );
    const idByName = new Map(rows.map(({ id, name }) => [name, id]));
    const grants = desired.buckets.map(({ bucketId: name, mode }) => {
      const bucketId = idByName.get(name);
      if (!bucketId)
        throw new StorageError(
          'not_found',
          `bucket ${name} is not known here: create it, or register an existing one with \`trivet bucket import\``,
          { resource: `bucket ${name}` },
        );
      const wanted = asked.find(bucket => bucket.bucketId === name)?.id;
      if (wanted !== undefined && wanted !== bucketId)
        throw new StorageError('not_found', `bucket ${name} is another one by now: look it up again`, {
          resource: `bucket ${name}`,
          field: 'buckets',
        });
      return { bucketId, name, mode };
    });
    // What it lost stays denied, beside what it has.
    const denied = (accessId === undefined ? [] : await grantedBuckets(tx, place, accessId))
      .filter(({ id, revoked }) => revoked && !grants.some(({ bucketId }) => bucketId === id))
      .map(({ name }) => ({ bucket: name, mode: 'revoked' as const }));
    const rights = [...grants.map(({ name, mode }) => ({ bucket: name, mode })), ...denied];
    const taken = kind.rightsBytes?.(rights) ?? 0;
    const most = kind.maxRightsBytes ?? Number.POSITIVE_INFINITY;
    if (taken > most)
      throw new StorageError(
        'resource_exhausted',
        `the rights of one access on these ${rights.length} buckets would take ${taken} bytes of ${most}: ask for several accesses`,
        { field: 'buckets' },
      );
    await requireRoom(tx, place, kind, grants, accessId);
    return grants;
  }

  private view(
    place: ObjectPlace,
    desired: DesiredAccess,
    access: { id: string; accountId: string; sealed: Buffer | null },
  ): AccessView {
    const buckets = desired.buckets.map(({ bucketId }) => view(place, bucketId, [desired.protocol]));
    const { accountId } = access;
    if (desired.serviceAccount) {
      const as = place.accessPoint.serviceAccounts?.nameOf(accountId) ?? accountId;
      return { accountId, buckets, credentials: NO_KEY, as };
    }
    if (!access.sealed)
      throw new StorageError(
        'failed_precondition',
        'its stored credentials are gone: revoke this access and grant it again',
      );
    const credentials = openCredentials(this.parts.secrets, place.tenantId, access.id, access.sealed);
    return { accountId, buckets, credentials };
  }
}

/** A bucket that was made anew under the name of another one is not opened by a key that somebody had for that. */
async function requireSameBuckets(
  tx: Tx,
  owner: AccessOwner,
  { id, name }: AccessRow,
  grants: readonly { bucketId: string; name: string }[],
): Promise<void> {
  const had = await grantedBuckets(tx, owner, id);
  const other = grants.find(({ bucketId }) => !had.some(bucket => bucket.id === bucketId && !bucket.revoked));
  if (other)
    throw new StorageError(
      'already_exists',
      `access ${name} was issued for another bucket ${other.name}, which is gone: revoke it first, or take another name`,
      { resource: `access ${name}`, field: 'name' },
    );
}

function otherChange(resource: string, { operation, operationGrace, parked }: KeyState): StorageError {
  const under =
    operationGrace === null
      ? `the former key of ${resource} is being ended by operation ${operation}`
      : `the key of ${resource} is being changed with a grace of ${operationGrace} seconds by operation ${operation}`;
  return parked
    ? new StorageError('failed_precondition', `${under}, which waits for an operator: retry or resolve it first`, {
        resource,
      })
    : new StorageError('aborted', `${under}; try again when that is over`, { resource });
}

/** Of the policies of the buckets, for one more each. */
async function requireRoom(
  tx: Tx,
  endpoint: AccessOwner,
  kind: ObjectBackendKind,
  grants: readonly { bucketId: string; name: string; mode: AccessMode }[],
  exceptOf: string | undefined,
  otherwise = 'revoke accesses first',
): Promise<void> {
  const bucketIds = grants.map(({ bucketId }) => bucketId);
  const counted = await countGrants(tx, endpoint, bucketIds, exceptOf);
  for (const { bucketId, name, mode } of grants) {
    const counts: Record<Grant['mode'], number> = { read_write: 0, read_only: 0, write_only: 0, revoked: 0 };
    for (const row of counted) if (row.bucketId === bucketId) counts[row.mode] = row.n;
    counts[mode]++;
    const bytes = kind.policyBytes(name, counts);
    if (bytes > kind.maxPolicyBytes)
      throw new StorageError(
        'resource_exhausted',
        `the policy of bucket ${name} would take ${bytes} ${kind.policyUnit ?? 'bytes'} of ${kind.maxPolicyBytes}: ${otherwise}`,
        { resource: `bucket ${name}` },
      );
  }
}

/** A name beside the one that the access has. */
async function requireRoomBeside(tx: Tx, owner: AccessOwner, kind: ObjectBackendKind, row: AccessRow): Promise<void> {
  const buckets = await grantedBuckets(tx, owner, row.id);
  const grants = buckets.flatMap(({ id: bucketId, name }) => {
    const mode = row.desired.buckets.find(bucket => bucket.bucketId === name)?.mode;
    return mode ? [{ bucketId, name, mode }] : [];
  });
  const otherwise = 'revoke an access, or change this one with no grace, which ends the signature that it has at once';
  await requireRoom(tx, owner, kind, grants, undefined, otherwise);
}

/** Whoever asks under the name of another one's access is not told its key. */
const otherDoor = (resource: string, { issued }: DesiredAccess): StorageError =>
  new StorageError(
    'already_exists',
    issued
      ? `${resource} was granted to a driver, which has its key: issue one of another name`
      : `${resource} was issued by a person, who has its key: ask for one of another name`,
    { resource },
  );

/** Told by the names that the caller knows, of which one may stand for several places. */
export function otherRequest(
  resource: string,
  places: readonly AccessPlace[],
  names: GrantRequest['fields'],
): StorageError {
  const fields = [...new Set(places.map(place => names[place]))].join(', ');
  return new StorageError('already_exists', `${resource} exists with another request: ${fields}`, { resource });
}

/** A bucket named twice alike is one bucket; with two modes it is a contradiction. */
function distinct(buckets: GrantRequest['buckets']): GrantRequest['buckets'] {
  if (buckets.length === 0) throw invalid('buckets', 'at least one is required');
  const byId = new Map<string, GrantRequest['buckets'][number]>();
  for (const bucket of buckets) {
    const known = byId.get(bucket.bucketId);
    if (known && known.mode !== bucket.mode)
      throw invalid('buckets', `bucket ${bucket.bucketId} is named twice with different access modes`);
    byId.set(bucket.bucketId, bucket);
  }
  return [...byId.values()];
}
