import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Handler } from '#operations/definitions/handler';
import { letLeasesEnd } from '#test/crash/dead-worker';
import { type Answer, persistWhile } from '#test/crash/persist';
import { postMortem } from '#test/crash/post-mortem';
import { ACCEPT_FAILPOINT, failpointsOf } from '#test/failpoints/failpoints-of';
import type { DaemonProcess, Role, TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/** One call whose operation is killed half-way, and what must be true after it. */
export interface Scenario<Stage> {
  name: string;
  kind: string;
  /** Which failpoints of the kind it is there for; of several that match, the first in the list. */
  covers: RegExp;
  /** Places that it passes more than once, at the hit that matters here, and those that others cover too. */
  alsoAt?: readonly string[];
  prepare(stage: Stage): Promise<void>;
  /** What has to go wrong at the first act; ordered right before it. */
  arm?(stage: Stage): void;
  /** The call whose operation dies half-way. */
  act(stage: Stage): Promise<Answer>;
  /** What others do while nobody works. */
  meanwhile?(stage: Stage): Promise<void>;
  /** What the call gets in the end: directly, or after passing refusals by its repeats. */
  code: string;
  /** What must be true at the store after it. */
  after(stage: Stage): void | Promise<void>;
  /** What the same call gets when it comes again after the answer; the same, with nothing changed, when absent. */
  again?: string;
  /** Leads to an end what the scenario leaves open on purpose. */
  finish?(stage: Stage): Promise<void>;
}

export interface KillCase<Stage> {
  scenario: Scenario<Stage>;
  role: Role;
  /** As in TRIVET_FAILPOINT, with the number of the hit. */
  at: string;
}

/** What an interface of the appliance brings along to be killed at each of its points. */
export interface KillableLeg<Stage> {
  scenarios: readonly Scenario<Stage>[];
  /** Only listed, never run. */
  handlers: readonly Handler[];
  /** Of its backend: in what places its handlers pass beside others'. */
  traits?: readonly string[];
  /** With no process yet. */
  create(): Promise<TestAppliance>;
  /** What stands at the store before the first call. */
  begin?(appliance: TestAppliance): Promise<void>;
  stage(appliance: TestAppliance, name: string): Stage;
  /** Until the background has nothing to do: it would die at a place that is not its handler's. */
  quiet?(appliance: TestAppliance): Promise<unknown>;
  /** Operations of this stage that have not ended. */
  open(stage: Stage): Promise<unknown[]>;
  /** The answer of something that is not over: its caller comes again. */
  isPassing(answer: Answer): boolean;
  /** Where Postgres and the store differ. */
  mismatches(appliance: TestAppliance, stages: readonly Stage[]): Promise<string[]>;
  /** What in the whole history broke a promise. */
  violations(appliance: TestAppliance): Promise<string[]>;
}

export const handlerOf = (leg: Pick<KillableLeg<never>, 'handlers'>, kind: string): Handler =>
  leg.handlers.find(handler => handler.kind === kind)!;

export const scenarioFor = <Stage>(leg: KillableLeg<Stage>, kind: string, point: string): Scenario<Stage> =>
  leg.scenarios.find(scenario => scenario.kind === kind && scenario.covers.test(point))!;

/** Each failpoint of the kind once, and where its scenarios want to die besides. */
export function casesOf<Stage>(leg: KillableLeg<Stage>, kind: string): KillCase<Stage>[] {
  const cases = failpointsOf(handlerOf(leg, kind), leg.traits).map((point): KillCase<Stage> => {
    return { scenario: scenarioFor(leg, kind, point), role: 'worker', at: `${point}@1` };
  });
  for (const scenario of leg.scenarios.filter(one => one.kind === kind))
    for (const point of scenario.alsoAt ?? [])
      cases.push({ scenario, role: 'worker', at: point.includes('@') ? point : `${point}@1` });
  return cases;
}

/** In the gateway, after the commit that accepts. */
export const acceptCase = <Stage>(leg: KillableLeg<Stage>, kind: string): KillCase<Stage> => ({
  scenario: leg.scenarios.findLast(scenario => scenario.kind === kind)!,
  role: 'gateway',
  at: `${ACCEPT_FAILPOINT}@1`,
});

/** Else it is a place of the gateway's, or of the store's, which all kinds pass. */
const isOfKind = ({ at, scenario }: KillCase<never>): boolean => at.startsWith(`${scenario.kind}:`);

/** So many stages are laid out at once. */
const AT_ONCE = 6;
const HOOK_MS = 120_000;
const LAID_OUT_MS = 4_000;

/**
 * Kills a process in each of these cases, and checks after each that its caller gets what it would have got, that the
 * store holds exactly what Postgres promises, and at the end that the whole history kept P2 to P4. A point that its
 * scenario does not reach fails its case, and a traced point that the list does not have fails the file.
 */
export function describeKillPoints<Stage>(
  title: string,
  leg: KillableLeg<Stage>,
  cases: readonly KillCase<Stage>[],
): void {
  describe(title, () => {
    const scenarios = leg.scenarios.filter(scenario => cases.some(one => one.scenario === scenario));
    const stages = new Map<KillCase<Stage>, Stage>();
    const all: Stage[] = [];
    const traced = new Set<string>();
    let appliance: TestAppliance;
    let worker: DaemonProcess;

    const restartWorker = async (): Promise<void> => {
      await worker.stop('SIGKILL');
      worker = await appliance.worker();
    };
    const stageOf = async (scenario: Scenario<Stage>, name: string): Promise<Stage> => {
      const stage = leg.stage(appliance, name);
      all.push(stage);
      await scenario.prepare(stage);
      return stage;
    };
    const repeated = async (call: () => Promise<Answer>, limitMs = 20_000): Promise<Answer> =>
      (await persistWhile(leg.isPassing, call, limitMs)).at(-1)!;
    const expectCode = async (answer: Answer, code: string): Promise<void> => {
      const why = answer.code === code ? '' : `${answer.message}\n${await postMortem(appliance, worker)}`;
      expect(answer, why).toMatchObject({ code });
    };
    const finish = async (scenario: Scenario<Stage>, stage: Stage): Promise<void> => {
      await expectCode(await repeated(() => scenario.act(stage)), scenario.again ?? scenario.code);
      if (!scenario.again) await scenario.after(stage);
      await scenario.finish?.(stage);
      // What the background began about it ends too, if need be after the lease of who was killed in it. It may begin
      // something at any moment: what counts is the look that found nothing.
      let left: unknown[] = [];
      await until(
        'its operations ended',
        async () => {
          left = await leg.open(stage);
          return left.length === 0;
        },
        15_000,
      ).catch(() => {});
      expect(left, left.length > 0 ? await postMortem(appliance, worker) : '').toEqual([]);
    };

    beforeAll(
      async () => {
        appliance = await leg.create();
        worker = await appliance.worker({ TRIVET_FAILPOINT: '*=trace' });
        await appliance.gateway();
        await leg.begin?.(appliance);
        // Unhurt first: which points does each scenario pass?
        for (const [at, scenario] of scenarios.entries()) {
          const stage = await stageOf(scenario, `trace${at}`);
          scenario.arm?.(stage);
          const outcome = await repeated(() => scenario.act(stage));
          expect(outcome, `${scenario.name}: ${outcome.message}`).toMatchObject({ code: scenario.code });
          await scenario.after(stage);
          await finish(scenario, stage);
        }
        for (let from = 0; from < cases.length; from += AT_ONCE) {
          const portion = cases.slice(from, from + AT_ONCE);
          const made = await Promise.all(portion.map((one, at) => stageOf(one.scenario, `case${from + at}`)));
          for (const [at, one] of portion.entries()) stages.set(one, made[at]!);
        }
        await until('the trace has arrived', () => /failpoint .*\n$/.test(worker.log()));
        for (const [, point] of worker.log().matchAll(/^failpoint (\S+)$/gm)) traced.add(point!);
      },
      Math.max(HOOK_MS, cases.length * LAID_OUT_MS),
    );
    afterAll(() => appliance?.close());

    it.each(cases.map((one, at) => ({ ...one, n: at, title: `${one.at}: ${one.scenario.name}` })))(
      '$title',
      async ({ scenario, role, at, n }) => {
        const stage = stages.get(cases[n]!)!;
        if (worker.exited) await restartWorker();
        if (!isOfKind(cases[n]!)) await leg.quiet?.(appliance);
        // Whoever recovered the case before is the one who dies in this one.
        const victim = role === 'gateway' ? appliance.process('gateway') : worker;
        await victim.arm(at.replace('@', '=kill@'));
        scenario.arm?.(stage);
        const answer = scenario.act(stage);
        const died = await within(20_000, `${at} is reached`, victim.ended());
        expect(died.signal).toBe('SIGKILL');
        if (role === 'gateway') await appliance.gateway();
        else {
          await letLeasesEnd(appliance);
          await scenario.meanwhile?.(stage);
          await restartWorker();
        }
        const first = await answer;
        const outcome = leg.isPassing(first) ? await repeated(() => scenario.act(stage)) : first;
        await expectCode(outcome, scenario.code);
        await scenario.after(stage);
        await finish(scenario, stage);
      },
    );

    it('leaves exactly what is promised, and kept the promises all the way', async () => {
      // One that a failed case ordered does not die late.
      await restartWorker();
      await appliance.settled();
      expect(await leg.mismatches(appliance, all)).toEqual([]);
      expect(await leg.violations(appliance)).toEqual([]);
    });

    it('knows every point that these scenarios pass', () => {
      const kinds = [...new Set(scenarios.map(scenario => scenario.kind))];
      const listed = new Set(kinds.flatMap(kind => failpointsOf(handlerOf(leg, kind), leg.traits)));
      const passed = [...traced].filter(point => kinds.some(kind => point.startsWith(`${kind}:`)));
      expect(passed.filter(point => !listed.has(point))).toEqual([]);
      const wanted = cases.filter(one => one.role === 'worker').map(one => one.at.replace(/@\d+$/, ''));
      expect(wanted.filter(point => !traced.has(point))).toEqual([]);
    });
  });
}

async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${ms} ms: ${what}`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
