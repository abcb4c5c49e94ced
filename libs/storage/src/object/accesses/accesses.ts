import { KEYLESS } from '#backends/object-backend';
import type { Caller } from '#operations/accepting/caller';
import { requireSuccess, type Submitted, shownAfter } from '#operations/accepting/operations';
import { encodeSealed } from '#platform/crypto/secrets';
import type { Tx } from '#platform/database/database';
import { invalid, StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { uuidv7 } from '#platform/uuid';
import { otherChange, otherDoor, otherRequest } from '#storage/object/accesses/access-refusals';
import {
  type AccessRow,
  type FoundAccess,
  findAccess,
  findAccessAt,
  grantedBuckets,
  insertAccess,
  lockAccess,
  lockAccount,
  servesAccesses,
  setAccessState,
  wantGrants,
} from '#storage/object/accesses/access-store';
import { NO_KEY } from '#storage/object/accesses/access-work';
import {
  distinctBuckets,
  findAskedBuckets,
  requireRoomBeside,
  requireSameBuckets,
} from '#storage/object/accesses/asked-buckets';
import { grantAccess } from '#storage/object/accesses/grant-access';
import { beginRotation, readKeys } from '#storage/object/accesses/key-changes';
import { narrowAccess } from '#storage/object/accesses/narrow-access';
import { revokeAccess } from '#storage/object/accesses/revoke-access';
import { supported, view } from '#storage/object/buckets/buckets';
import { type EndpointCaller, type ObjectPlace, type PlacedCaller, requireServing } from '#storage/object/endpoint';
import type { ObjectDependencies } from '#storage/object/object-dependencies';
import type { AccessCalls, AccessView, GrantRequest } from '#storage/object/object-storage';
import { credentialsPlace, newCredentials, openCredentials } from '#storage/object/rights/credentials';
import { accessDifferences, type DesiredAccess, desiredAccess, fingerprint } from '#storage/shared/desired-state';

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
    const desired = desiredAccess(request.protocol, distinctBuckets(request.buckets), request);
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

      const grants = await findAskedBuckets(tx, place, kind, desired, { accessId: row?.id, asked: request.buckets });
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
