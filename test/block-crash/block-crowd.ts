import { expect } from 'vitest';
import { blockHistoryOf, blockViolations } from '#test/block-crash/block-history';
import { BlockJobs, type Host, hostOf, isPassing, must, persist, type Reply } from '#test/block-crash/block-jobs';
import { targetsOf } from '#test/block-crash/block-targets';
import { lastingMismatches } from '#test/block-crash/block-truth';
import { difference, type ImageKind, type PoolImages, pattern } from '#test/block-crash/pool-images';
import { poolOf } from '#test/block-crash/pool-of-appliance';
import type { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const SIZE = 64 * 1024;
/** Of each kind. */
const EACH = 7;
export const CROWD = 7 * EACH;
/** Below the bound of a call, which is 0.3 leases of 6 s. */
const CALL_TAKES_MS = 1_000;

interface Made {
  id: string;
  name: string;
}

/**
 * Fifty callers at once, each with another volume: creations, clones of snapshots, expansions, snapshots, publications,
 * their ends, and deletions. Each does what an orchestrator does, which is to repeat its call while it is told to.
 */
export class BlockCrowd {
  private readonly jobs: BlockJobs;
  private readonly pool: PoolImages;
  private readonly host: Host;
  private readonly volumes = new Map<string, Made>();
  private readonly snapshots = new Map<string, string>();
  private readonly wanted: { kind: ImageKind; id: string; bytes: Buffer }[] = [];

  constructor(
    private readonly appliance: TestAppliance,
    private readonly prefix: string,
  ) {
    this.jobs = new BlockJobs(appliance);
    this.pool = poolOf(appliance);
    this.host = hostOf(`${prefix}-host`);
  }

  /** The volumes that the calls are about, each with content. */
  async prepare(): Promise<void> {
    await must(() => this.jobs.host(this.host));
    const kinds = ['source', 'grown', 'cut', 'published', 'unpublished', 'deleted'];
    await Promise.all(kinds.flatMap(kind => this.each(at => this.volume(`${kind}-${at}`))));
    await this.each(async at => {
      const source = this.volumes.get(`source-${at}`)!.id;
      this.snapshots.set(`source-${at}`, (await must(() => this.jobs.snapshot(source, 'of-source'))).body.id);
      await must(() => this.jobs.publish(this.id('unpublished', at), this.host));
      await must(() => this.jobs.publish(this.id('grown', at), this.host));
    });
  }

  /** Sends all calls; resolves when the last one is through with its repeats. */
  start(): Promise<Reply[][]> {
    this.appliance.fakeBlock?.addFault({ mode: 'delay', delayMs: CALL_TAKES_MS, count: CROWD * 20 });
    const { jobs, host } = this;
    const calls: ((at: number) => Promise<Reply>)[] = [
      at => jobs.create(this.name('created', at), SIZE),
      at => jobs.cloneOfSnapshot(this.name('cloned', at), this.snapshots.get(`source-${at}`)!, 2 * SIZE),
      at => jobs.expand(this.id('grown', at), 2 * SIZE),
      at => jobs.snapshot(this.id('cut', at), 'taken'),
      at => jobs.publish(this.id('published', at), host),
      at => jobs.unpublish(this.id('unpublished', at), host),
      at => jobs.delete(this.id('deleted', at)),
    ];
    return Promise.all(calls.flatMap(call => Array.from({ length: EACH }, (_, at) => persist(() => call(at)))));
  }

  /** Until the gateway accepted most of them, and some run; the others come while it is broken. */
  async underWay(): Promise<void> {
    await until('the operations are under way', async () => {
      const open = await this.appliance.operations("state IN ('pending', 'running')");
      return open.length >= CROWD / 2 && open.filter(({ state }) => state === 'running').length >= 8;
    });
  }

  /** Every call succeeded in the end, nobody heard worse than to come again, and each had its effect once. */
  async verify(results: readonly Reply[][]): Promise<void> {
    expect(results).toHaveLength(CROWD);
    const worse = results.flat().filter(reply => !['200', '204', 'GONE'].includes(reply.code) && !isPassing(reply));
    expect(worse.map(({ code, message }) => `${code}: ${message}`)).toEqual([]);
    expect(results.filter(list => isPassing(list.at(-1)!)).map(list => list.at(-1))).toEqual([]);
    await this.appliance.settled();
    this.appliance.fakeBlock?.clearFaults();
    expect(await lastingMismatches(this.appliance)).toEqual([]);
    expect(blockViolations(await blockHistoryOf(this.appliance))).toEqual([]);
    await this.expectOnce();
    await this.expectContents();
    const served = (await targetsOf(this.appliance)).map(({ iqn }) => iqn.replace(/^.*:/, ''));
    const wanted = ['published', 'grown'].flatMap(kind => Array.from({ length: EACH }, (_, at) => this.id(kind, at)));
    expect(served.sort()).toEqual(wanted.sort());
  }

  /** One operation for each, whatever happened to it and however often its caller repeated. */
  private async expectOnce(): Promise<void> {
    const wanted = {
      'snapshot.create': 2 * EACH,
      'volume.clone': EACH,
      'volume.create': 7 * EACH,
      'volume.delete': EACH,
      'volume.expand': EACH,
      'volume.publish': 3 * EACH,
      'volume.unpublish': EACH,
    };
    // Not those that the background begins by itself.
    const counted = await this.appliance.database.query<{ kind: string; n: number }>(
      `SELECT kind, count(*)::int AS n FROM trivet.operation
        WHERE state = 'succeeded' AND kind = ANY ($1) GROUP BY 1 ORDER BY 1`,
      [Object.keys(wanted)],
    );
    expect(Object.fromEntries(counted.map(({ kind, n }) => [kind, n]))).toEqual(wanted);
  }

  private async expectContents(): Promise<void> {
    const { database } = this.appliance;
    for (const at of Array.from({ length: EACH }, (_, n) => n)) {
      const [clone] = await database.query<Made>('SELECT id FROM trivet.volume WHERE name = $1', [
        this.name('cloned', at),
      ]);
      this.want('volume', clone!.id, this.grown(`source-${at}`));
      this.want('volume', this.id('grown', at), this.grown(`grown-${at}`));
      const [cut] = await database.query<Made>('SELECT id FROM trivet.snapshot WHERE volume_id = $1', [
        this.id('cut', at),
      ]);
      this.want('snapshot', cut!.id, this.content(`cut-${at}`));
    }
    const wrong: string[] = [];
    for (const { kind, id, bytes } of this.wanted) {
      const found = difference(await this.pool.bytes(kind, id), bytes);
      if (found) wrong.push(`${kind} ${id}: ${found}`);
    }
    expect(wrong).toEqual([]);
  }

  private want(kind: ImageKind, id: string, bytes: Buffer): void {
    this.wanted.push({ kind, id, bytes });
  }

  private async volume(key: string): Promise<void> {
    const name = `${this.prefix}-${key}`;
    const { body } = await must(() => this.jobs.create(name, SIZE));
    this.volumes.set(key, { id: body.id, name });
    await this.pool.write(body.id, 0, this.content(key));
  }

  private content(key: string): Buffer {
    return pattern(`${this.prefix} ${key}`, SIZE);
  }

  private grown(key: string): Buffer {
    return Buffer.concat([this.content(key), Buffer.alloc(SIZE)]);
  }

  private readonly name = (kind: string, at: number): string => `${this.prefix}-${kind}-${at}`;
  private readonly id = (kind: string, at: number): string => this.volumes.get(`${kind}-${at}`)!.id;

  private each<T>(work: (at: number) => Promise<T>): Promise<T[]> {
    return Promise.all(Array.from({ length: EACH }, (_, at) => work(at)));
  }
}
