import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { historyOf, violations } from '#test/crash/history';
import { credentialsOf, Jobs, mustSucceed } from '#test/crash/jobs';
import { mismatches } from '#test/crash/truth';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const LEASE_MS = 2_000;
/** As step-context.ts has it: a call may take 0.3 leases, and may take effect within twice that. */
const HORIZON_MS = LEASE_MS * 0.3 * 2;

describe('a deletion overtakes a creation whose call went unanswered', () => {
  let appliance: TestAppliance;
  let jobs: Jobs;
  beforeAll(async () => {
    appliance = await TestAppliance.start({
      backend: 'fake',
      env: { TRIVET_LEASE_MS: String(LEASE_MS), TRIVET_RECONCILE_MS: '150' },
    });
    jobs = new Jobs(appliance.client());
  });
  afterAll(() => appliance?.close());

  const lateKeys = () => appliance.fake!.lateEffects().filter(({ method }) => method === 'putPrincipal').length;
  const began = (method: string, resource: string) =>
    until(`${method} has begun`, () => appliance.fake!.calls({ method, resource }).length > 0);
  const firstAt = (method: string, resource: string): number => appliance.fake!.calls({ method, resource })[0]!.at;

  it.each([
    ['hang', false],
    ['hang-after', false],
    ['late', false],
    ['hang', true],
    ['hang-after', true],
    ['late', true],
  ] as const)('%s, worker killed: %s', async (mode, killed) => {
    const name = `gone-${mode}-${killed}`;
    appliance.fake!.addFault({ method: 'createBucket', resource: name, mode, delayMs: HORIZON_MS * 0.8 });
    const creation = jobs.create(name);
    await began('createBucket', name);
    const deletion = jobs.delete(name);
    await until('the deletion is accepted', async () => (await operationsOf(name)).includes('bucket.delete'));
    if (killed) {
      await appliance.process('worker').stop('SIGKILL');
      // What the dead process had asked for comes true after its death, within the horizon.
      appliance.fake!.deliverLate();
      await appliance.worker();
    }
    // The creation's caller may hear of the failure first; it never hears that the bucket is there.
    expect((await creation).code).toMatch(/ABORTED|UNAVAILABLE/);
    const deleted = await deletion;
    if (deleted.code !== 'OK') await mustSucceed(() => jobs.delete(name));
    await appliance.settled();
    await until('late effects are delivered', () => appliance.fake!.lateEffects().length === 0);
    expect(appliance.fake!.bucket(name)).toBeUndefined();
    // Probed only after the unanswered call could no longer take effect.
    const probes = appliance.fake!.calls({ method: 'inspectBucket', resource: name });
    expect(probes.at(-1)!.at).toBeGreaterThanOrEqual(firstAt('createBucket', name) + HORIZON_MS - 10);
    expect(await mismatches(appliance)).toEqual([]);
    // And the name is free for another life.
    await mustSucceed(() => jobs.create(name));
    await mustSucceed(() => jobs.delete(name));
  });

  it('a grant whose key hangs is revoked without a trace', async () => {
    await mustSucceed(() => jobs.create('shared'));
    const kept = credentialsOf(await mustSucceed(() => jobs.grant('kept', [['shared', 'READ_ONLY']])));
    appliance.fake!.addFault({ method: 'putPrincipal', mode: 'late', delayMs: HORIZON_MS * 0.8 });
    const granting = jobs.grant('taken', [['shared', 'READ_WRITE']]);
    await until('the key is asked for', () => lateKeys() === 1);
    const [access] = await appliance.database.query<{ account_id: string }>(
      "SELECT account_id FROM trivet.access WHERE name = 'taken'",
    );
    await mustSucceed(() => jobs.revoke(access!.account_id, ['shared']));
    expect((await granting).code).toMatch(/ABORTED|UNAVAILABLE/);
    await appliance.settled();
    expect(lateKeys()).toBe(0);
    expect(appliance.fake!.principals().map(({ uid }) => uid)).toEqual([kept.accountId]);
    expect(appliance.fake!.grants('shared')).toEqual([{ uid: kept.accountId, mode: 'read_only' }]);
  });

  it('kept every promise on the way', async () => {
    expect(await mismatches(appliance)).toEqual([]);
    expect(violations(await historyOf(appliance))).toEqual([]);
  });

  const operationsOf = async (name: string): Promise<string[]> =>
    (await appliance.operations(`resource_name = '${name}'`)).map(({ kind }) => kind);
});
