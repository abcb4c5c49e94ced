/**
 * The principals of Garage are keys, known by their names: those of one access have one name. A key carries its rights, and its
 * id never comes back once it was deleted.
 */
import type { AdminApi, GarageKey } from '#backends/garage/admin-api';
import type { IssuedKey, Principal } from '#backends/object-backend';
import { RefusedRequest } from '#backends/s3/errors';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

const idsNamed = async (admin: AdminApi, name: string, signal: AbortSignal): Promise<string[]> =>
  (await admin.keysNamed(new Set([name]), signal)).map(({ id }) => id);

/** A key beside another one may do what that may: its rights are given before anybody hears of it. */
export async function putKeys(admin: AdminApi, name: string, principal: Principal, signal: LeaseSignal): Promise<void> {
  const { beside = [] } = principal;
  const wanted = [principal, ...beside].map(({ accessKeyId }) => accessKeyId);
  const there = await idsNamed(admin, name, signal);
  if (!there.includes(principal.accessKeyId)) await importKey(admin, name, principal, signal);
  for (const key of beside) if (!there.includes(key.accessKeyId)) await importKey(admin, name, key, signal, 'or none');
  for (const key of [principal, ...beside])
    if (there.includes(key.accessKeyId)) await requireSecret(admin, key, principal, signal);
  await shareRights(admin, [...new Set([...there, ...wanted])], wanted, signal);
  for (const id of there.filter(one => !wanted.includes(one))) await deleteKey(admin, id, signal);
}

export async function holdsKeys(
  admin: AdminApi,
  name: string,
  principal: Principal,
  signal: AbortSignal,
): Promise<boolean> {
  const wanted = [principal, ...(principal.beside ?? [])];
  const there = await idsNamed(admin, name, signal);
  if (there.length !== wanted.length || !wanted.every(({ accessKeyId }) => there.includes(accessKeyId))) return false;
  for (const { accessKeyId, secretAccessKey } of wanted)
    if ((await admin.key(accessKeyId, signal))?.secretAccessKey !== secretAccessKey) return false;
  return true;
}

export async function removeKeys(admin: AdminApi, name: string, signal: LeaseSignal, only?: string): Promise<void> {
  for (const id of await idsNamed(admin, name, signal))
    if (only === undefined || id === only) await deleteKey(admin, id, signal);
}

async function deleteKey(admin: AdminApi, id: string, signal: LeaseSignal): Promise<void> {
  try {
    await admin.change('DeleteKey', {}, signal, { id });
  } catch (error) {
    if (!(error instanceof RefusedRequest && error.code === 'NoSuchAccessKey')) throw error;
  }
}

/** @param otherwise `or none`: one that was deleted cannot be put right, and is left out */
async function importKey(
  admin: AdminApi,
  name: string,
  { accessKeyId, secretAccessKey }: IssuedKey,
  signal: LeaseSignal,
  otherwise?: 'or none',
): Promise<void> {
  try {
    await admin.change('ImportKey', { accessKeyId, secretAccessKey, name }, signal);
  } catch (error) {
    if (!(error instanceof RefusedRequest && error.code === 'KeyAlreadyExists')) throw error;
    const holder = await admin.key(accessKeyId, signal);
    // Our own import of a moment ago, whose answer was lost.
    if (holder?.name === name) return;
    if (holder) throw new StorageError('already_exists', `key ${accessKeyId} belongs to '${holder.name}' at Garage`);
    if (otherwise) return;
    throw new StorageError(
      'failed_precondition',
      `key ${accessKeyId} was deleted at Garage, which never takes an id again: change the key of this access (trivet access rotate)`,
    );
  }
}

async function requireSecret(
  admin: AdminApi,
  { accessKeyId, secretAccessKey }: IssuedKey,
  { uid }: Principal,
  signal: AbortSignal,
): Promise<void> {
  if ((await admin.key(accessKeyId, signal))?.secretAccessKey === secretAccessKey) return;
  throw new StorageError(
    'failed_precondition',
    `key ${accessKeyId} has another secret at Garage, which changes none: change the key of this access (trivet access rotate)`,
    { resource: `principal ${uid}` },
  );
}

/** Each of `to` gets what any of `from` may do. */
async function shareRights(
  admin: AdminApi,
  from: readonly string[],
  to: readonly string[],
  signal: LeaseSignal,
): Promise<void> {
  if (from.length < 2) return;
  const keys = (await Promise.all(from.map(id => admin.key(id, signal)))).filter(key => key !== undefined);
  const rights = keys.flatMap(({ buckets }) => buckets).filter(({ permissions: { read, write } }) => read || write);
  for (const key of keys.filter(({ accessKeyId }) => to.includes(accessKeyId)))
    for (const right of rights.filter(one => !has(key, one)))
      await admin.change(
        'AllowBucketKey',
        { bucketId: right.id, accessKeyId: key.accessKeyId, permissions: { ...right.permissions, owner: false } },
        signal,
      );
}

const has = ({ buckets }: GarageKey, { id, permissions: { read, write } }: GarageKey['buckets'][number]): boolean =>
  buckets.some(one => one.id === id && (one.permissions.read || !read) && (one.permissions.write || !write));
