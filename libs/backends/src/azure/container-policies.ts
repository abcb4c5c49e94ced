/**
 * The stored access policies of a container: ours are those whose id begins with an account of ours, all others stay as they are.
 *
 * The list is written whole, and the service has no compare-and-swap for it: of conditions on a container's list it knows
 * only the time of the last change, in seconds. So the write is bound to that, and what it left is read again: a write of
 * somebody else in the same second stops the operation for a person to look. Writes of Trivet's own do not meet: whoever
 * makes one holds the bucket's policy slot (ADR 47).
 */
import type { ContainerClient, SignedIdentifier } from '@azure/storage-blob';
import { errorCode } from '#backends/azure/errors';
import type { AccessMode, Grant } from '#backends/object-backend';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

/** Azure's own limit. */
export const MAX_POLICIES = 5;
const OURS = 'trivet-';

/** The service wants an end, in the signature or here. */
const NEVER = new Date('9999-12-31T00:00:00Z');

/**
 * r read, a append, c create, w write, d delete, l list. Writing includes to overwrite and what belongs to a blob's own
 * properties, as it does with S3; no right on tags, permissions, immutability or earlier versions is given.
 */
const PERMISSIONS: Readonly<Record<AccessMode, string>> = { read_write: 'racwdl', read_only: 'rl', write_only: 'acw' };

export async function putPolicies(
  container: ContainerClient,
  grants: readonly Grant[],
  signal: LeaseSignal,
): Promise<void> {
  const before = await container.getAccessPolicy({ abortSignal: signal });
  const others = before.signedIdentifiers.filter(({ id }) => !id.startsWith(OURS));
  const ours = wanted(grants);
  if (same(oursOf(before.signedIdentifiers), ours)) return;
  const all = [...others, ...ours];
  // What makes them fewer must be possible even when others made them too many.
  if (all.length > MAX_POLICIES && all.length > before.signedIdentifiers.length)
    throw new StorageError(
      'resource_exhausted',
      `container ${container.containerName} would need ${all.length} stored access policies; Azure has at most ${MAX_POLICIES}: revoke accesses first`,
      { resource: `bucket ${container.containerName}` },
    );
  try {
    await container.setAccessPolicy(before.blobPublicAccess, all, {
      abortSignal: signal,
      conditions: { ifUnmodifiedSince: before.lastModified },
    });
  } catch (error) {
    if (errorCode(error) === 'ConditionNotMet') throw changedMeanwhile(container.containerName);
    throw error;
  }
  const { signedIdentifiers: after } = await container.getAccessPolicy({ abortSignal: signal });
  if (!same(oursOf(after), ours) || idsOf(after) !== idsOf(all)) throw changedMeanwhile(container.containerName);
}

export async function holdsPolicies(
  container: ContainerClient,
  grants: readonly Grant[],
  signal: AbortSignal,
): Promise<boolean> {
  const { signedIdentifiers } = await container.getAccessPolicy({ abortSignal: signal });
  return same(oursOf(signedIdentifiers), wanted(grants));
}

/** What our policies say; for tests, and nothing of others. */
export function grantsOf(policies: readonly SignedIdentifier[]): Grant[] {
  return oursOf(policies).map(({ id, accessPolicy: { permissions = '' } }) => {
    const [mode] = Object.entries(PERMISSIONS).find(([, given]) => letters(given) === letters(permissions)) ?? [];
    if (mode === undefined) throw new Error(`policy ${id} gives ${permissions}`);
    return { uid: id, mode: mode as AccessMode };
  });
}

/** Without its policy a signature is worth nothing: what is revoked needs none. */
function wanted(grants: readonly Grant[]): SignedIdentifier[] {
  return grants.flatMap(({ uid, mode, signedAs = [uid], endsAt }) => {
    if (mode === 'revoked') return [];
    const accessPolicy = { permissions: PERMISSIONS[mode], expiresOn: endsAt ? new Date(endsAt) : NEVER };
    // The service takes one without a beginning, whatever the SDK's type says.
    return signedAs.map(id => ({ id, accessPolicy: accessPolicy as SignedIdentifier['accessPolicy'] }));
  });
}

const oursOf = (policies: readonly SignedIdentifier[]) => policies.filter(({ id }) => id.startsWith(OURS));
const idsOf = (policies: readonly SignedIdentifier[]) => JSON.stringify(policies.map(({ id }) => id).sort());
const letters = (permissions: string) => [...permissions].sort().join('');

const same = (left: readonly SignedIdentifier[], right: readonly SignedIdentifier[]): boolean =>
  JSON.stringify(spell(left)) === JSON.stringify(spell(right));
const spell = (policies: readonly SignedIdentifier[]) =>
  policies
    .map(({ id, accessPolicy }) => [
      id,
      letters(accessPolicy?.permissions ?? ''),
      accessPolicy?.startsOn?.getTime() ?? 0,
      accessPolicy?.expiresOn?.getTime() ?? 0,
    ])
    .sort(([a = ''], [b = '']) => (a < b ? -1 : 1));

const changedMeanwhile = (name: string): StorageError =>
  new StorageError(
    'failed_precondition',
    `somebody else changed container ${name} while its stored access policies were written; check that those which are not Trivet's are still as intended, then retry`,
    { resource: `bucket ${name}` },
  );
