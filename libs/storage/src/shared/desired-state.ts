import { hash } from 'node:crypto';
import type { AccessMode, BucketSpec, ObjectProtocol, ServiceAccount } from '#backends/object-backend';

/**
 * What a caller asked for, in a form that no protocol, wire revision or release changes: a repeat is recognised by it.
 * Absent means default, sets are sorted, keys are sorted. Whoever changes a form raises its version and migrates the
 * stored ones; the golden test holds what earlier releases wrote.
 */
export interface DesiredBucket {
  v: 1;
  protocols: readonly ObjectProtocol[];
  spec: BucketSpec;
}

export interface DesiredAccess {
  v: 1;
  protocol: ObjectProtocol;
  authentication: 'key' | 'service_account';
  /** Who comes in without a key. */
  serviceAccount?: ServiceAccount;
  buckets: readonly { bucketId: string; mode: AccessMode }[];
  /** Absent: its key is changed when somebody asks for it. */
  rotation?: Rotation;
  /** Absent: it opens its buckets until it is taken away. */
  expiry?: Expiry;
  /** By a person, who alone is told its key; absent: granted to a driver. */
  issued?: true;
}

/** How often a key is changed by itself, and how long the one before is let in beside it. */
export interface Rotation {
  afterSeconds: number;
  graceSeconds: number;
}

/** For how long what Grant answers is good; a repeat in the second half of that time answers one that is good for as long again. */
export interface Expiry {
  afterSeconds: number;
}

/** What makes two creations of one name the same; the rest may be edited afterwards. */
export interface DesiredVolume {
  v: 1;
  /** Decimal. */
  sizeBytes: string;
  source?: { snapshotId: string } | { volumeId: string } | { image: string };
  pool: string;
  folder: string;
  thick: boolean;
}

export function desiredBucket(protocols: readonly ObjectProtocol[], spec: BucketSpec): DesiredBucket {
  return { v: 1, protocols: [...new Set(protocols)].sort(), spec };
}

export function desiredAccess(
  protocol: ObjectProtocol,
  buckets: readonly { bucketId: string; mode: AccessMode }[],
  { rotation, expiry, serviceAccount }: Pick<DesiredAccess, 'rotation' | 'expiry' | 'serviceAccount'> = {},
): DesiredAccess {
  const sorted = buckets.map(({ bucketId, mode }) => ({ bucketId, mode }));
  sorted.sort((a, b) => (a.bucketId < b.bucketId ? -1 : a.bucketId > b.bucketId ? 1 : 0));
  const terms = { ...(rotation ? { rotation } : {}), ...(expiry ? { expiry } : {}) };
  const who = serviceAccount
    ? ({ authentication: 'service_account', serviceAccount } as const)
    : ({ authentication: 'key' } as const);
  return { v: 1, protocol, ...who, buckets: sorted, ...terms };
}

/** What a caller asks of an access, and may ask otherwise under the same name. */
export type AccessPlace = 'protocol' | 'authentication' | 'buckets' | 'modes' | 'rotation' | 'expiry';

export function accessDifferences(is: DesiredAccess, asked: DesiredAccess): AccessPlace[] {
  const modes = new Map(is.buckets.map(({ bucketId, mode }) => [bucketId, mode]));
  const sameBuckets = modes.size === asked.buckets.length && asked.buckets.every(({ bucketId }) => modes.has(bucketId));
  // Of a bucket that the access does not have, only a mode that it has nowhere is another one.
  const sameModes = asked.buckets.every(({ bucketId, mode }) =>
    modes.has(bucketId) ? modes.get(bucketId) === mode : [...modes.values()].includes(mode),
  );
  const places: [AccessPlace, boolean][] = [
    ['protocol', is.protocol === asked.protocol],
    ['authentication', canonical(is.serviceAccount ?? null) === canonical(asked.serviceAccount ?? null)],
    ['buckets', sameBuckets],
    ['modes', sameModes],
    ['rotation', canonical(is.rotation ?? null) === canonical(asked.rotation ?? null)],
    ['expiry', is.expiry?.afterSeconds === asked.expiry?.afterSeconds],
  ];
  return places.filter(([, same]) => !same).map(([place]) => place);
}

export const desiredVolume = ({
  sizeBytes,
  ...rest
}: Omit<DesiredVolume, 'v' | 'sizeBytes'> & { sizeBytes: bigint }): DesiredVolume => ({
  v: 1,
  sizeBytes: `${sizeBytes}`,
  ...rest,
});

/** JSON with sorted keys and without absent ones. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
    entries.sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(',')}}`;
  }
  return JSON.stringify(value);
}

export const fingerprint = (desired: DesiredBucket | DesiredAccess | DesiredVolume): Buffer =>
  hash('sha256', canonical(desired), 'buffer');

/** The places at which two desired states differ, for the message of a conflict: `spec.quotaMaxSize`. */
export function differences(a: unknown, b: unknown, path = ''): string[] {
  if (canonical(a ?? null) === canonical(b ?? null)) return [];
  const plain = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!plain(a) || !plain(b)) return [path];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .sort()
    .flatMap(key => differences(a[key], b[key], path ? `${path}.${key}` : key));
}
