/**
 * What is noted down beside the images, in keys of 16 small objects. The cluster compares and sets such keys in one step, so
 * the highest fence of an image holds for all hosts (invariant E5), and whatever is noted with a fence is noted by nobody who
 * was overtaken.
 *
 *   <image>                            its highest fence, and when
 *   <image>/image                      RBD's id of the image that has its name: another with that name is somebody else's
 *   <image>/thick                      the size from which a growth has still to reserve
 *   <image>/stage/<operation>-<fence>/<name>   an attempt, from before its first change
 *   trash/<id>                         moved there by us: nothing else is taken from the trash
 */

import type { StageRef } from '#backends/block-backend';
import { type ImageShare, isInShare } from '#backends/image-share';
import type { CephProcess } from '#backends/rbd/ceph-process';
import { HostFenceOvertaken, StorageError } from '#platform/errors';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';
import { applianceTime } from '#platform/process/appliance-time';

/** A decimal bigint that sorts as text. */
const DIGITS = 20;
/** Sorts behind whatever follows a fence. */
const END = '~';
const SHARDS = '0123456789abcdef';
const PAGE = 1_000;

export interface StageRecord {
  name: string;
  fence: bigint;
  /** Complete: may be given its name. */
  whole: boolean;
  /** The snapshot that it is cloned from, and RBD's id of the image that has it. */
  cut?: { id: string; snapshot: string };
}

type Changes = Readonly<Record<string, string>>;

export class RbdRecords {
  constructor(
    private readonly ceph: CephProcess,
    private readonly cephPool: string,
  ) {}

  /** Resolves when no higher fence was entered, and `set` and `remove` are done with it; else rejects with `aborted`. */
  async enter(
    imageId: string,
    fence: string,
    signal: LeaseSignal,
    set: Changes = {},
    remove: readonly string[] = [],
  ): Promise<void> {
    const own = padded(fence);
    const under = (keys: readonly string[]) => keys.map(key => `${imageId}/${key}`);
    const values = { [imageId]: `${own} ${new Date(applianceTime()).toISOString()}` };
    for (const [key, value] of Object.entries(set)) values[`${imageId}/${key}`] = value;
    const condition = { key: imageId, is: 'below', value: `${own}${END}` } as const;
    mayChange(signal);
    const shard = shardOf(imageId);
    if (!(await this.ceph.call(signal, 'changeKeys', this.cephPool, shard, [condition], values, under(remove))))
      throw new HostFenceOvertaken(imageId, fence, await this.#highest(imageId, signal));
    mayChange(signal);
  }

  async #highest(imageId: string, signal: AbortSignal): Promise<string> {
    return BigInt((await this.of(imageId, signal)).get('')?.slice(0, DIGITS) ?? 0).toString();
  }

  /** When something was last begun with it, in ms since 1970; undefined: never, or long ago. */
  async enteredAt(imageId: string, signal: AbortSignal): Promise<number | undefined> {
    const fence = (await this.of(imageId, signal)).get('');
    return fence === undefined ? undefined : Date.parse(fence.slice(DIGITS + 1));
  }

  /** All that is noted of an image, by what follows its id. */
  async of(imageId: string, signal: AbortSignal): Promise<Map<string, string>> {
    const found = await this.ceph.call(signal, 'keys', this.cephPool, shardOf(imageId), imageId, '', PAGE);
    return new Map(found.map(([key, value]) => [key.slice(imageId.length + 1), value]));
  }

  /** RBD's ids, by the ids of our images. */
  async imageIds(signal: AbortSignal, share?: ImageShare): Promise<Map<string, string>> {
    const ids = new Map<string, string>();
    for await (const [key, value] of this.#all(signal))
      if (key.endsWith('/image') && isInShare(key.slice(0, -'/image'.length), share))
        ids.set(key.slice(0, -'/image'.length), value);
    return ids;
  }

  /** Forgets fences that nobody entered for so long, of images of which nothing else is noted. */
  async prune(olderThanMs: number, signal: LeaseSignal): Promise<void> {
    const before = applianceTime() - olderThanMs;
    const last = new Map<string, string>();
    for await (const [key, value] of this.#all(signal)) {
      if (key.startsWith(TRASH)) continue;
      if (!key.includes('/')) last.set(key, value);
      else last.delete(key.slice(0, key.indexOf('/')));
    }
    for (const [imageId, value] of last) {
      if (Date.parse(value.slice(DIGITS + 1)) > before) continue;
      const unchanged = { key: imageId, is: 'equal', value } as const;
      mayChange(signal);
      await this.ceph.call(signal, 'changeKeys', this.cephPool, shardOf(imageId), [unchanged], {}, [imageId]);
    }
  }

  async noteTrash(id: string, signal: LeaseSignal): Promise<void> {
    mayChange(signal);
    await this.ceph.call(signal, 'changeKeys', this.cephPool, TRASH_SHARD, [], { [`${TRASH}${id}`]: '1' }, []);
  }

  async forgetTrash(id: string, signal: AbortSignal): Promise<void> {
    await this.ceph.call(signal, 'changeKeys', this.cephPool, TRASH_SHARD, [], {}, [`${TRASH}${id}`]);
  }

  async trashed(signal: AbortSignal): Promise<string[]> {
    const found = await this.ceph.call(signal, 'keys', this.cephPool, TRASH_SHARD, TRASH, '', PAGE);
    return found.map(([key]) => key.slice(TRASH.length));
  }

  async *#all(signal: AbortSignal): AsyncGenerator<[key: string, value: string]> {
    for (const shard of SHARDS)
      for (let after = ''; ; ) {
        const page = await this.ceph.call(signal, 'keys', this.cephPool, `${OBJECT}${shard}`, '', after, PAGE);
        yield* page;
        if (page.length < PAGE) break;
        after = page.at(-1)![0];
      }
  }
}

const OBJECT = 'trivet_records.';
/** All of them: a full pool takes keys of objects that are there, and no new objects. */
export const RECORD_OBJECTS = [...SHARDS].map(shard => `${OBJECT}${shard}`);
const TRASH = 'trash/';
const TRASH_SHARD = `${OBJECT}0`;
const shardOf = (imageId: string): string => `${OBJECT}${imageId.at(-1)}`;

export const attemptsOf = (stage: StageRef): string => `stage/${stage.operationId}-${padded(stage.fence)}/`;
export const stageKey = (stage: StageRef, name: string): string => `${attemptsOf(stage)}${name}`;
export const stageValue = ({ whole, cut }: Omit<StageRecord, 'name' | 'fence'>): string =>
  JSON.stringify({ whole, cut });

/** The attempts among what is noted of an image, by their keys. */
export function stagesIn(records: ReadonlyMap<string, string>): Map<string, StageRecord> {
  const stages = new Map<string, StageRecord>();
  for (const [key, value] of records) {
    const [, fence, name] = /^stage\/[0-9a-f-]{36}-(\d{20})\/(.+)$/.exec(key) ?? [];
    if (fence && name) stages.set(key, { name, fence: BigInt(fence), ...JSON.parse(value) });
  }
  return stages;
}

function padded(fence: string): string {
  if (!/^\d{1,19}$/.test(fence)) throw new StorageError('internal', `not a fence: ${fence}`, { retry: 'never' });
  return fence.padStart(DIGITS, '0');
}
