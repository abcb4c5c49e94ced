/**
 * Pools of a cluster, as ours. A key `marker` of the object `trivet_pool` says whose a pool is; without it nothing is opened
 * or made there (invariant F2).
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { PoolStatus, PoolSurvey } from '#backends/block-backend';
import type { ApplianceIdentity } from '#backends/object-backend';
import { codeOf, NO_SPACE } from '#backends/rbd/ceph-errors';
import type { CephProcess } from '#backends/rbd/ceph-process';
import { cephPoolsOf, type RbdPoolConfig } from '#backends/rbd/rbd-config';
import { MARKER_OBJECT, parseName } from '#backends/rbd/rbd-names';
import { RECORD_OBJECTS } from '#backends/rbd/rbd-records';
import { StorageError } from '#platform/errors';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';

const KEY = 'marker';
/** Ceph's own list of what is in the trash, made with the first of it: which a full pool does not take. */
const TRASH_OBJECT = 'rbd_trash';
/** For how long a look at the fullness of pools holds. */
const ROOM_MS = 2_000;

const marker = z.object({
  format: z.literal(1),
  uuid: z.uuid(),
  applianceId: z.string(),
  tenantId: z.string(),
  createdAt: z.string(),
});
type Marker = z.output<typeof marker>;

const df = z.object({
  pools: z.array(z.object({ name: z.string(), stats: z.object({ stored: z.number(), max_avail: z.number() }) })),
});
const poolList = z.array(z.object({ pool_name: z.string(), flags_names: z.string(), quota_max_bytes: z.number() }));
type Listed = z.output<typeof poolList>[number];

export class RbdPools {
  #listed: { at: number; pools: Listed[] } | undefined;
  /** Names of those that were written to, or might have been. */
  readonly #allowed = new Set<string>();

  constructor(
    readonly configured: readonly RbdPoolConfig[],
    private readonly ceph: CephProcess,
    private readonly owner: ApplianceIdentity,
  ) {}

  named(name: string): RbdPoolConfig {
    const found = this.configured.find(pool => pool.name === name);
    if (!found) throw new StorageError('failed_precondition', `pool ${name} is not registered`);
    return found;
  }

  /** The pool, if it is there and ours. */
  async open(name: string, signal: AbortSignal): Promise<RbdPoolConfig & { uuid: string }> {
    const pool = this.named(name);
    const found = await this.#marker(pool, signal);
    if (!found) throw down(name, `pool ${pool.cephPool} of the cluster was not prepared for this appliance`);
    if (found.applianceId !== this.owner.applianceId || found.tenantId !== this.owner.tenantId)
      throw down(name, `pool ${pool.cephPool} of the cluster belongs to another appliance or tenant`);
    return { ...pool, uuid: found.uuid };
  }

  async prepare(name: string, signal: LeaseSignal): Promise<void> {
    const pool = this.named(name);
    if (await this.#marker(pool, signal)) return;
    await this.#requireUnused(pool, signal);
    const { applianceId, tenantId } = this.owner;
    const made: Marker = { format: 1, uuid: randomUUID(), applianceId, tenantId, createdAt: new Date().toISOString() };
    const absent = { key: KEY, is: 'equal', value: '' } as const;
    mayChange(signal);
    await Promise.all(
      [...RECORD_OBJECTS, TRASH_OBJECT].map(object =>
        this.ceph.call(signal, 'changeKeys', pool.cephPool, object, [], {}, []),
      ),
    );
    mayChange(signal);
    // Of two callers at once, one makes it.
    await this.ceph.call(
      signal,
      'changeKeys',
      pool.cephPool,
      MARKER_OBJECT,
      [absent],
      { [KEY]: JSON.stringify(made) },
      [],
    );
  }

  /** Whether it could be prepared; caps for writing are found out when it is. */
  async survey(name: string, signal: AbortSignal): Promise<PoolSurvey> {
    const pool = this.named(name);
    const isOurs = (await this.#marker(pool, signal)) !== undefined;
    if (isOurs) await this.open(name, signal);
    else await this.#requireUnused(pool, signal);
    const [{ totalBytes, usedBytes }, noRoom] = await Promise.all([
      this.#usage(pool, signal),
      this.#fullness(pool, signal),
    ]);
    if (noRoom !== undefined) return { ok: false, detail: noRoom };
    const whose = isOurs ? 'is this pool already' : 'has nothing of an appliance';
    return {
      ok: true,
      detail: `pool ${pool.cephPool} of the cluster ${whose}; ${usedBytes} of ${totalBytes} bytes used`,
    };
  }

  async status(name: string, signal: AbortSignal): Promise<PoolStatus> {
    const { uuid, ...pool } = await this.open(name, signal);
    await this.#requireCaps(pool, signal);
    const [usage, noRoom] = await Promise.all([this.#usage(pool, signal), this.#fullness(pool, signal)]);
    return { name, state: 'up', uuid, ...usage, ...(noRoom === undefined ? {} : { noRoom }), clone: 'reflink' };
  }

  /**
   * Throws where the cluster keeps writers waiting for room, since a request would hang instead of failing; and where it will
   * soon: what is left is for volumes that are there.
   */
  async requireRoom(pool: RbdPoolConfig, signal: AbortSignal): Promise<void> {
    const reason = await this.#fullness(pool, signal);
    if (reason !== undefined) throw new StorageError('resource_exhausted', reason);
  }

  async #requireUnused(pool: RbdPoolConfig, signal: AbortSignal): Promise<void> {
    const taken = (await this.#inPool(pool, () => this.ceph.call(signal, 'names', pool.cephPool))).find(parseName);
    if (taken !== undefined)
      throw new StorageError(
        'failed_precondition',
        `pool ${pool.cephPool} of the cluster has no marker, and images like those of an appliance, such as ${taken}`,
      );
  }

  async #fullness(pool: RbdPoolConfig, signal: AbortSignal): Promise<string | undefined> {
    const listed = await this.#list(signal);
    for (const cephPool of cephPoolsOf(pool)) {
      const full = fullness(listed.find(({ pool_name: found }) => found === cephPool)?.flags_names);
      if (full !== undefined) return `${NO_SPACE}: pool ${cephPool} of the cluster ${full}`;
    }
    return undefined;
  }

  /** Whether the caps are those of somebody who may write, asked by a change under a condition that never holds. */
  async #requireCaps(pool: RbdPoolConfig, signal: AbortSignal): Promise<void> {
    if (this.#allowed.has(pool.name)) return;
    const never = [{ key: KEY, is: 'equal', value: 'never' }] as const;
    for (const cephPool of cephPoolsOf(pool))
      await this.ceph.call(signal, 'changeKeys', cephPool, MARKER_OBJECT, never, {}, []).catch(error => {
        if (codeOf(error) === 'ENOENT') throw down(pool.name, `the cluster has no pool ${cephPool}`);
        // A pool with erasure coding has no keys; who may not write to it is told so before.
        if (codeOf(error) !== 'EOPNOTSUPP') throw error;
      });
    this.#allowed.add(pool.name);
  }

  async #usage(pool: RbdPoolConfig, signal: AbortSignal): Promise<{ totalBytes: bigint; usedBytes: bigint }> {
    const dataPool = pool.dataPool ?? pool.cephPool;
    const [listed, answer] = await Promise.all([
      this.#list(signal),
      this.ceph.call(signal, 'command', { prefix: 'df' }),
    ]);
    const quota = listed.find(({ pool_name: found }) => found === dataPool)?.quota_max_bytes;
    // Figures come from a manager; a cluster without one has none.
    const stats = df.parse(answer).pools.find(({ name }) => name === dataPool)?.stats;
    const bounds = [
      ...(stats ? [stats.stored + stats.max_avail] : []),
      ...(quota ? [quota] : []),
      ...(pool.capacityBytes ? [pool.capacityBytes] : []),
    ];
    if (bounds.length === 0)
      throw down(pool.name, `the cluster tells no size of pool ${dataPool}: it has no manager, and the pool no quota`);
    return { totalBytes: BigInt(Math.min(...bounds)), usedBytes: BigInt(stats?.stored ?? 0) };
  }

  async #list(signal: AbortSignal): Promise<Listed[]> {
    if (this.#listed && performance.now() - this.#listed.at < ROOM_MS) return this.#listed.pools;
    const pools = poolList.parse(await this.ceph.call(signal, 'command', { prefix: 'osd pool ls', detail: 'detail' }));
    this.#listed = { at: performance.now(), pools };
    return pools;
  }

  async #marker(pool: RbdPoolConfig, signal: AbortSignal): Promise<Marker | undefined> {
    const [found] = await this.#inPool(pool, () =>
      this.ceph.call(signal, 'keys', pool.cephPool, MARKER_OBJECT, KEY, '', 1),
    );
    if (!found) return undefined;
    const parsed = marker.safeParse(readJson(found[1]));
    if (parsed.success) return parsed.data;
    throw down(pool.name, `the marker of pool ${pool.cephPool} of the cluster cannot be understood`);
  }

  async #inPool<T>(pool: RbdPoolConfig, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (codeOf(error) === 'ENOENT') throw down(pool.name, `the cluster has no pool ${pool.cephPool}`);
      throw error;
    }
  }
}

/** What keeps writers of a pool with these flags waiting, or soon will. */
export function fullness(flags = ''): string | undefined {
  const names = flags.split(',');
  if (names.includes('full_quota')) return 'has used up its quota';
  if (names.includes('full')) return 'is full';
  if (names.includes('backfillfull') || names.includes('nearfull')) return 'is nearly full';
  return undefined;
}

const down = (name: string, why: string): StorageError =>
  new StorageError('unavailable', `pool ${name} is down: ${why}`);

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
