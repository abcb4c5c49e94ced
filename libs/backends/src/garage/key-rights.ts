/** What keys may do at a bucket: read, write, or both. Who may write there may delete as well, so write_only is refused. */
import type { AdminApi, GarageBucket, Permissions } from '#backends/garage/admin-api';
import type { Grant } from '#backends/object-backend';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

const NOTHING: Permissions = { read: false, write: false, owner: false };

function permissionsOf(mode: Grant['mode']): Permissions {
  switch (mode) {
    case 'read_write':
      return { read: true, write: true, owner: false };
    case 'read_only':
      return { read: true, write: false, owner: false };
    case 'revoked':
      return NOTHING;
    case 'write_only':
      throw new StorageError('unimplemented', 'Garage lets who may write delete as well: write only cannot be had');
  }
}

interface Difference {
  accessKeyId: string;
  add: Permissions;
  take: Permissions;
}

export interface KeyNames {
  /** What the keys of an access are called. */
  nameOf(uid: string): string;
  isOurs(name: string): boolean;
}

/** Of what is written and what is to be; `missing`: some principal has no key yet, so nothing can be written of it. */
export async function differences(
  admin: AdminApi,
  bucket: GarageBucket,
  grants: readonly Grant[],
  names: KeyNames,
  signal: AbortSignal,
): Promise<{ missing: boolean; rows: Difference[] }> {
  const wanted = new Map(grants.map(({ uid, mode }) => [names.nameOf(uid), permissionsOf(mode)]));
  const needed = new Set(grants.filter(({ mode }) => mode !== 'revoked').map(({ uid }) => names.nameOf(uid)));
  const known = needed.size === 0 ? [] : await admin.keysNamed(needed, signal);
  const at = new Map(bucket.keys.map(key => [key.accessKeyId, key]));
  const ids = new Map(known.map(({ id, name }) => [id, name]));
  for (const { accessKeyId, name } of bucket.keys) if (names.isOurs(name)) ids.set(accessKeyId, name);
  const rows = [...ids].map(([accessKeyId, name]) => {
    const [now, then] = [at.get(accessKeyId)?.permissions ?? NOTHING, wanted.get(name) ?? NOTHING];
    return { accessKeyId, add: less(then, now), take: less(now, then) };
  });
  const found = new Set(known.map(({ name }) => name));
  return {
    missing: [...needed].some(name => !found.has(name)),
    rows: rows.filter(({ add, take }) => isAny(add) || isAny(take)),
  };
}

export async function writeRights(
  admin: AdminApi,
  bucketId: string,
  rows: readonly Difference[],
  signal: LeaseSignal,
): Promise<void> {
  const write = async (operation: string, which: 'take' | 'add') => {
    for (const { accessKeyId, [which]: permissions } of rows)
      if (isAny(permissions)) await admin.change(operation, { bucketId, accessKeyId, permissions }, signal);
  };
  await write('DenyBucketKey', 'take');
  await write('AllowBucketKey', 'add');
}

const isAny = ({ read, write, owner }: Permissions): boolean => read || write || owner;
const less = (one: Permissions, other: Permissions): Permissions => ({
  read: one.read && !other.read,
  write: one.write && !other.write,
  owner: one.owner && !other.owner,
});
