import { isKubeError, type KubeClient } from '../kube/kube-client.js';
import {
  type DataSnapshot,
  SNAPSHOT_CONTENTS,
  type SnapshotContent,
  VOLUME_SNAPSHOTS,
  type VolumeSnapshot,
} from './resources.js';

/** The session cannot be, and a repeat does not help. */
export class SessionFailed extends Error {}

/** It cannot be now. The words are our own, and the same at each repeat. */
export class SessionWaits extends Error {}

export interface FoundSnapshot extends DataSnapshot {
  driver: string;
  claim?: string;
}

const AT_ONCE = 16;

/**
 * What CSI calls a VolumeSnapshot. Throws SessionFailed with words for the one who asked.
 * @param mayBeGoing one that is being deleted counts as long as it is there
 */
export async function findSnapshot(
  kube: KubeClient,
  namespace: string,
  name: string,
  { signal, mayBeGoing = false }: { signal?: AbortSignal; mayBeGoing?: boolean } = {},
): Promise<FoundSnapshot> {
  const fail = (why: string): never => {
    throw new SessionFailed(`VolumeSnapshot ${name} ${why}`);
  };
  const snapshot = await orNothing(kube.get<VolumeSnapshot>(VOLUME_SNAPSHOTS, { namespace, name }, signal));
  if (!snapshot || (snapshot.metadata.deletionTimestamp && !mayBeGoing)) return fail('does not exist');
  const { status, metadata, spec } = snapshot;
  const contentName = status?.boundVolumeSnapshotContentName;
  if (!contentName || !status?.readyToUse) return fail('is not ready to use');
  const content = await orNothing(kube.get<SnapshotContent>(SNAPSHOT_CONTENTS, { name: contentName }, signal));
  if (!content) return fail(`has no VolumeSnapshotContent ${contentName}`);
  const { volumeSnapshotRef: of, driver, source } = content.spec;
  // Whoever writes into the status of a snapshot must not get at what is another's.
  if (of.name !== name || of.namespace !== namespace || (of.uid && of.uid !== metadata.uid))
    return fail(`is not the one that VolumeSnapshotContent ${contentName} belongs to`);
  const { snapshotHandle, readyToUse } = content.status ?? {};
  if (!snapshotHandle || readyToUse === false) return fail('is not ready to use');
  const claim = spec.source?.persistentVolumeClaimName;
  return {
    name,
    driver,
    snapshotHandle,
    ...(source?.volumeHandle ? { volumeHandle: source.volumeHandle } : {}),
    ...(claim ? { claim } : {}),
  };
}

/** In the order in which they were asked for, some at a time; and they are of one driver. */
export async function findSnapshots(
  kube: KubeClient,
  namespace: string,
  names: readonly string[],
  signal: AbortSignal,
): Promise<{ driver: string; snapshots: DataSnapshot[] }> {
  const found: FoundSnapshot[] = [];
  for (let at = 0; at < names.length; at += AT_ONCE) {
    const portion = names.slice(at, at + AT_ONCE);
    found.push(...(await Promise.all(portion.map(name => findSnapshot(kube, namespace, name, { signal })))));
  }
  const drivers = [...new Set(found.map(({ driver }) => driver))];
  if (drivers.length > 1)
    throw new SessionFailed(`the VolumeSnapshots are of several CSI drivers: ${drivers.sort().join(', ')}`);
  const snapshots = found.map(({ name, snapshotHandle, volumeHandle }) => ({
    name,
    snapshotHandle,
    ...(volumeHandle ? { volumeHandle } : {}),
  }));
  return { driver: drivers[0]!, snapshots };
}

export const orNothing = <T>(asked: Promise<T>): Promise<T | undefined> =>
  asked.catch(error => {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  });
