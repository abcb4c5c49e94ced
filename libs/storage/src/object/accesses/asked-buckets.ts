/** The buckets that an access is asked for: each is there, and has room for one more. */
import { type AccessMode, type Grant, type ObjectBackendKind } from '#backends/object-backend';
import type { Tx } from '#platform/database/database';
import { invalid, StorageError } from '#platform/errors';
import {
  type AccessOwner,
  type AccessRow,
  countGrants,
  grantedBuckets,
  resolveBuckets,
} from '#storage/object/accesses/access-store';
import type { ObjectPlace } from '#storage/object/endpoint';
import type { GrantRequest } from '#storage/object/object-storage';
import type { DesiredAccess } from '#storage/shared/desired-state';

/** A bucket named twice alike is one bucket; with two modes it is a contradiction. */
export function distinctBuckets(buckets: GrantRequest['buckets']): GrantRequest['buckets'] {
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

/** All-or-nothing: every bucket exists and its policy has room, or nothing is accepted. */
export async function findAskedBuckets(
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

/** A bucket that was made anew under the name of another one is not opened by a key that somebody had for that. */
export async function requireSameBuckets(
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
export async function requireRoomBeside(
  tx: Tx,
  owner: AccessOwner,
  kind: ObjectBackendKind,
  row: AccessRow,
): Promise<void> {
  const buckets = await grantedBuckets(tx, owner, row.id);
  const grants = buckets.flatMap(({ id: bucketId, name }) => {
    const mode = row.desired.buckets.find(bucket => bucket.bucketId === name)?.mode;
    return mode ? [{ bucketId, name, mode }] : [];
  });
  const otherwise = 'revoke an access, or change this one with no grace, which ends the signature that it has at once';
  await requireRoom(tx, owner, kind, grants, undefined, otherwise);
}
