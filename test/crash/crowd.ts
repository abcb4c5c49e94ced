import { expect } from 'vitest';
import type { Outcome } from '#test/cosi/client';
import { historyOf, violations } from '#test/crash/history';
import { type Credentials, credentialsOf, isPassing, Jobs, persist } from '#test/crash/jobs';
import { mismatches } from '#test/crash/truth';
import type { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/** So many operations are under way at once when something breaks. */
const SIZE = 100;
/** Of a bound of 1.8 s: what goes on takes as long as it takes to break something. */
const CALL_TAKES_MS = 1_000;

/**
 * A hundred callers at once: half of them create a bucket, half get access to one that is there. Each does what a
 * sidecar does, which is to repeat its call while the answer is ABORTED or UNAVAILABLE.
 */
export class Crowd {
  private readonly jobs: Jobs;
  private readonly half = SIZE / 2;
  private held: number | undefined;

  constructor(
    private readonly appliance: TestAppliance,
    readonly prefix: string,
  ) {
    this.jobs = new Jobs(appliance.client());
  }

  /** The buckets that the accesses are to. */
  async prepare(): Promise<void> {
    await this.each(at => persist(() => this.jobs.create(this.shared(at))));
  }

  /** Sends all calls, none of which is through before `underWay`; resolves when the last one is, with its repeats. */
  start(): Promise<Result[]> {
    this.held = this.appliance.fake!.addFault(this.slow('hold'));
    return this.send();
  }

  /** As `start`, and nothing waits. */
  send(): Promise<Result[]> {
    this.appliance.fake!.addFault(this.slow('delay'));
    const creations = this.each(async at => ({ outcomes: await persist(() => this.jobs.create(this.made(at))) }));
    const grants = this.each(async at => {
      const outcomes = await persist(() => this.grant(at));
      return { outcomes, credentials: outcomes.at(-1)!.code === 'OK' ? credentialsOf(outcomes.at(-1)!) : undefined };
    });
    return Promise.all([creations, grants]).then(([a, b]): Result[] => [...a, ...b]);
  }

  /** Until the gateway accepted all, and many run: however long that takes, none is through. Then they go on. */
  async underWay(running = 20): Promise<void> {
    await until('the operations are under way', async () => {
      const open = await this.open();
      return open.length === SIZE && open.filter(({ state }) => state === 'running').length >= running;
    });
    this.appliance.fake!.liftFault(this.held!);
  }

  private slow(mode: 'hold' | 'delay') {
    return { mode, delayMs: CALL_TAKES_MS, resource: `*${this.prefix}*`, count: SIZE * 10 };
  }

  private open() {
    return this.appliance.operations(
      `state IN ('pending', 'running') AND resource_name LIKE '%${this.prefix}%' AND resource_name NOT LIKE '%shared%'`,
    );
  }

  /**
   * Every call succeeded in the end, nobody heard worse than ABORTED or UNAVAILABLE meanwhile, each thing exists once
   * with what was answered, and repeats get the same again.
   */
  async verify(results: readonly Result[]): Promise<void> {
    const outcomes = results.flatMap(result => result.outcomes);
    const worse = outcomes.filter(outcome => outcome.code !== 'OK' && !isPassing(outcome));
    expect(worse.map(({ code, message }) => `${code}: ${message}`)).toEqual([]);
    expect(results.filter(result => result.outcomes.at(-1)!.code === 'OK')).toHaveLength(SIZE);
    await this.appliance.settled();
    this.appliance.fake!.clearFaults();
    expect(await mismatches(this.appliance)).toEqual([]);
    expect(violations(await historyOf(this.appliance))).toEqual([]);
    await this.eachOnce();
    const promised = results.flatMap(({ credentials }) => credentials ?? []);
    const again = await this.each(async at => credentialsOf((await persist(() => this.grant(at))).at(-1)!));
    expect(again).toEqual(promised);
    const principals = this.appliance.fake!.principals();
    for (const { accountId, accessKeyId, secretAccessKey } of promised)
      expect(principals.find(({ uid }) => uid === accountId)?.keys).toEqual([{ accessKeyId, secretAccessKey }]);
  }

  /** One operation for each, whatever happened to it and however often its caller repeated. */
  private async eachOnce(): Promise<void> {
    const operations = await this.appliance.operations(`resource_name LIKE '%${this.prefix}%'`);
    const text = ({ kind, resource_name, state }: (typeof operations)[number]) => `${kind} ${resource_name} ${state}`;
    const wanted = Array.from({ length: this.half }, (_, at) => [
      `bucket.create ${this.shared(at)} succeeded`,
      `bucket.create ${this.made(at)} succeeded`,
      `access.grant ${this.access(at)} succeeded`,
    ]);
    expect(operations.map(text).sort()).toEqual(wanted.flat().sort());
    const creations = this.appliance
      .fake!.calls({ method: 'createBucket', resource: `${this.prefix}*` })
      .filter(row => row.phase === 'effect' && row.outcome === 'created');
    expect(creations).toHaveLength(SIZE);
  }

  private grant(at: number): Promise<Outcome> {
    return this.jobs.grant(this.access(at), [[this.shared(at), 'READ_WRITE']]);
  }

  private each<T>(work: (at: number) => Promise<T>): Promise<T[]> {
    return Promise.all(Array.from({ length: this.half }, (_, at) => work(at)));
  }

  private readonly shared = (at: number): string => `${this.prefix}-shared-${at}`;
  private readonly made = (at: number): string => `${this.prefix}-made-${at}`;
  private readonly access = (at: number): string => `${this.prefix}-access-${at}`;
}

export interface Result {
  outcomes: Outcome[];
  credentials?: Credentials;
}
