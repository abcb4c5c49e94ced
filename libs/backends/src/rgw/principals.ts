/** Users of the store that hold keys: one for each access. `uid` is qualified by the RGW tenant. */
import type { IssuedKey, Principal, PrincipalRef } from '#backends/object-backend';
import { type AdminOps, OP_MASK } from '#backends/rgw/admin-ops';
import { errorCode, RefusedRequest } from '#backends/s3/errors';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

export async function putPrincipal(
  admin: AdminOps,
  uid: string,
  principal: Principal,
  signal: LeaseSignal,
): Promise<void> {
  if (await isAsGiven(admin, uid, principal, signal)) return;
  try {
    await admin.putUser(uid, { displayName: principal.displayName, keys: keysOf(principal) }, signal);
  } catch (error) {
    // 16.2 says BucketAlreadyExists for a key id that another user holds.
    if (!(error instanceof RefusedRequest && error.status === 409)) throw error;
    const message = `the access key of ${principal.uid} belongs to another user of the object store`;
    throw new StorageError('already_exists', message, { resource: `principal ${principal.uid}`, cause: error });
  }
}

const keysOf = (principal: Principal): readonly IssuedKey[] => [principal, ...(principal.beside ?? [])];

/** The given keys; not suspended, and no right to make buckets. */
export async function isAsGiven(
  admin: AdminOps,
  uid: string,
  principal: Principal,
  signal: AbortSignal,
): Promise<boolean> {
  const user = await admin.getUser(uid, signal);
  const usable = user?.max_buckets === -1 && Number(user.suspended) === 0 && user.op_mask === OP_MASK;
  const given = keysOf(principal);
  return (
    usable &&
    user.keys.length === given.length &&
    given.every(({ accessKeyId, secretAccessKey }) =>
      user.keys.some(key => key.access_key === accessKeyId && key.secret_key === secretAccessKey),
    )
  );
}

export async function removeKey(
  admin: AdminOps,
  uid: string,
  { accessKeyId }: PrincipalRef,
  signal: LeaseSignal,
): Promise<void> {
  const user = await admin.getUser(uid, signal);
  if (!user?.keys.some(key => key.access_key === accessKeyId)) return;
  try {
    await admin.deleteKey(uid, accessKeyId, signal);
  } catch (error) {
    // Of a missing key RGW says 403 InvalidAccessKeyId; our own was good a moment ago.
    const code = errorCode(error);
    if (code !== 'InvalidAccessKeyId' && code !== 'NoSuchUser') throw error;
  }
}

/** One that is gone is no error; RGW keeps one that owns buckets, which is what `refusal` says. */
export async function removeUser(
  admin: AdminOps,
  uid: string,
  resource: string,
  refusal: string,
  signal: LeaseSignal,
): Promise<void> {
  try {
    await admin.deleteUser(uid, signal);
  } catch (error) {
    if (errorCode(error) === 'NoSuchUser') return;
    if (!(error instanceof RefusedRequest && error.status === 409)) throw error;
    throw new StorageError('failed_precondition', refusal, { resource, cause: error });
  }
}
