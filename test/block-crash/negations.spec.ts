import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blockHistoryOf, blockViolations } from '#test/block-crash/block-history';
import { must, persist, type Reply } from '#test/block-crash/block-jobs';
import { BlockStage, SIZE } from '#test/block-crash/block-stage';
import { lastingMismatches } from '#test/block-crash/block-truth';
import type { FaultMode } from '#test/fakes/object/fake-faults';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const LEASE_MS = 2_000;
/** As step-context.ts has it: a call may take 0.3 leases, and may take effect within twice that. */
const HORIZON_MS = LEASE_MS * 0.3 * 2;

interface Pair {
  name: string;
  /** The call that is under way, by its last backend method, which is what goes wrong. */
  method: string;
  prepare(stage: BlockStage): Promise<unknown>;
  begin(stage: BlockStage): Promise<Reply>;
  /** The negation, or another call that excludes it. */
  negate(stage: BlockStage): Promise<Reply>;
  /** What the first caller may hear in the end. */
  first: RegExp;
  after(stage: BlockStage): Promise<void>;
}

const idOf = async (stage: BlockStage, table: string, name: string): Promise<string> => {
  const [row] = await stage.appliance.database.query<{ id: string }>(
    `SELECT id FROM trivet.${table} WHERE name = $1 AND state <> 'gone'`,
    [name],
  );
  return row?.id ?? '00000000-0000-7000-8000-000000000000';
};
const volume = async (stage: BlockStage): Promise<void> => {
  stage.volumeId = await stage.volume('a', { config: { destroy_on_delete: true } });
};
const withHost = async (stage: BlockStage): Promise<void> => {
  await volume(stage);
  await must(() => stage.jobs.host(stage.host));
};
const expectGone = async (stage: BlockStage, name: string): Promise<void> => {
  const rows = await stage.appliance.database.query('SELECT FROM trivet.volume WHERE name = $1 AND state <> $2', [
    name,
    'gone',
  ]);
  expect(rows).toEqual([]);
};
const deleteNamed = async (stage: BlockStage, name: string): Promise<Reply> =>
  stage.jobs.delete(await idOf(stage, 'volume', name), true);
const expectUnserved = async (stage: BlockStage): Promise<void> => {
  expect(await stage.target()).toBeUndefined();
  expect(
    await stage.appliance.database.query('SELECT FROM trivet.publication WHERE volume_id = $1', [stage.volumeId]),
  ).toEqual([]);
};

const PAIRS: readonly Pair[] = [
  {
    name: 'a volume is deleted while it is created',
    method: 'commit',
    prepare: async () => {},
    begin: ({ jobs, name }) => jobs.create(`${name}-a`, SIZE, { config: { destroy_on_delete: true } }),
    negate: stage => deleteNamed(stage, `${stage.name}-a`),
    first: /409|503/,
    after: stage => expectGone(stage, `${stage.name}-a`),
  },
  {
    name: 'a clone is deleted while it is made',
    method: 'stage',
    prepare: volume,
    begin: ({ jobs, name, volumeId }) => jobs.cloneOfVolume(`${name}-clone`, volumeId, SIZE),
    negate: stage => deleteNamed(stage, `${stage.name}-clone`),
    first: /409|503/,
    after: stage => expectGone(stage, `${stage.name}-clone`),
  },
  {
    name: 'a volume is deleted while it is expanded',
    method: 'growImage',
    prepare: volume,
    begin: ({ jobs, volumeId }) => jobs.expand(volumeId, 2 * SIZE),
    negate: ({ jobs, volumeId }) => jobs.delete(volumeId),
    first: /200|404|409|503/,
    after: async stage => {
      stage.forget(stage.volumeId);
      await expectGone(stage, `${stage.name}-a`);
    },
  },
  {
    name: 'a volume is deleted while a snapshot of it is taken: after it, and by force',
    method: 'commit',
    prepare: volume,
    begin: ({ jobs, volumeId, name }) => jobs.snapshot(volumeId, `${name}-s`),
    negate: ({ jobs, volumeId }) => jobs.delete(volumeId, true),
    first: /200|404|409|503/,
    after: async stage => {
      stage.forget(stage.volumeId);
      await expectGone(stage, `${stage.name}-a`);
    },
  },
  {
    name: 'a snapshot is deleted while it is taken',
    method: 'stage',
    prepare: volume,
    begin: ({ jobs, volumeId, name }) => jobs.snapshot(volumeId, `${name}-s`),
    negate: async stage => stage.jobs.deleteSnapshot(await idOf(stage, 'snapshot', `${stage.name}-s`)),
    first: /503/,
    after: async stage => expect(await idOf(stage, 'snapshot', `${stage.name}-s`)).toMatch(/^0+-/),
  },
  {
    name: 'a volume is unpublished while it is published',
    method: 'applyTarget',
    prepare: withHost,
    begin: ({ jobs, volumeId, host }) => jobs.publish(volumeId, host),
    negate: ({ jobs, volumeId, host }) => jobs.unpublish(volumeId, host),
    first: /409|503/,
    after: expectUnserved,
  },
  {
    name: 'a volume is deleted by force while it is published',
    method: 'applyTarget',
    prepare: withHost,
    begin: ({ jobs, volumeId, host }) => jobs.publish(volumeId, host),
    negate: ({ jobs, volumeId }) => jobs.delete(volumeId, true),
    first: /404|409|503/,
    after: async stage => {
      stage.forget(stage.volumeId);
      await expectUnserved(stage);
      await expectGone(stage, `${stage.name}-a`);
    },
  },
];

const MODES: readonly FaultMode[] = ['delay', 'hang', 'hang-after', 'late'];

describe('an operation is negated while its call is on the way', () => {
  let appliance: TestAppliance;
  beforeAll(async () => {
    appliance = await TestAppliance.start({
      backend: 'fake',
      block: 'fake-xfs',
      env: { TRIVET_LEASE_MS: String(LEASE_MS), TRIVET_RECONCILE_MS: '150' },
    });
  });
  afterAll(() => appliance?.close());

  describe.each(PAIRS)('$name', pair => {
    it.each(MODES)('the call: %s', async mode => run(pair, mode, false));
    it('a call that hangs, and a worker that is killed in it', () => run(pair, 'hang', true));
  });

  const run = async (pair: Pair, mode: FaultMode, killed: boolean): Promise<void> => {
    const stage = new BlockStage(appliance, `${PAIRS.indexOf(pair)}-${mode}-${killed}`);
    await pair.prepare(stage);
    const before = await operationsOf(stage);
    const { fakeBlock } = appliance;
    const fault = await armed(stage, pair, mode);
    const first = pair.begin(stage);
    await until(`${pair.method} has begun`, () => fakeBlock!.faultRemaining(fault) === 0);
    const second = persist(() => pair.negate(stage), 40_000);
    if (killed) {
      await until('the negation is accepted, or waits', async () => (await operationsOf(stage)) > before);
      await appliance.process('worker').stop('SIGKILL');
      await appliance.worker();
    }
    const answers = await second;
    expect(answers.at(-1)!.code, answers.at(-1)!.message).toMatch(/^(GONE|204)$/);
    expect((await first).code).toMatch(pair.first);
    await until('its operations ended', async () => (await stage.open()).length === 0);
    await fakeBlock!.deliverLateCalls();
    await pair.after(stage);
    expect(await stage.wrongContents()).toEqual([]);
  };

  /** Creations have ids that nobody knows yet: one at a time then. */
  const armed = async (stage: BlockStage, { method }: Pair, mode: FaultMode): Promise<number> => {
    const resource = method === 'applyTarget' ? `*${stage.volumeId}` : method === 'growImage' ? stage.volumeId : '*';
    const order = { method, resource, mode, delayMs: mode === 'late' ? HORIZON_MS * 0.8 : 400 };
    return appliance.fakeBlock!.addFault(order);
  };
  const operationsOf = async ({ name }: BlockStage): Promise<number> =>
    (await appliance.operations(`resource_name LIKE '${name}-%'`)).length;

  it('left nothing that is not promised, and kept the promises all the way', async () => {
    await appliance.settled();
    expect(await lastingMismatches(appliance)).toEqual([]);
    expect(blockViolations(await blockHistoryOf(appliance))).toEqual([]);
  });
});
