import { existsSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type DaemonProcess, TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/**
 * An orderly stop (design section 10). The lease and the time to a redispatch are far longer than these tests may take:
 * whatever goes on here, goes on because it was handed over.
 */
const LEASE_MS = 60_000;
const RECONCILE_MS = 6_000;

let appliance: TestAppliance;
beforeAll(async () => {
  const env = { TRIVET_LEASE_MS: `${LEASE_MS}`, TRIVET_RECONCILE_MS: `${RECONCILE_MS}` };
  appliance = await TestAppliance.create({ backend: 'fake', env });
  await appliance.gateway();
});
afterAll(() => appliance?.close());
afterEach(() => appliance.fake!.clearFaults());

const operation = async (name: string) =>
  (
    await appliance.database.query<{
      state: string;
      attempt: number;
      crashes: number;
      lease_owner: string;
      left: number;
    }>(
      `SELECT state, attempt, crashes, lease_owner, extract(epoch FROM lease_until - now())::float8 AS left
         FROM trivet.operation WHERE resource_name = $1`,
      [name],
    )
  )[0]!;
const create = (name: string) => appliance.client().call('v1alpha1', 'DriverCreateBucket', { name });
const begun = (name: string) =>
  until(
    `the creation of ${name} began`,
    () => appliance.fake!.calls({ method: 'createBucket', resource: name }).length > 0,
  );
const effects = (name: string) =>
  appliance.fake!.calls({ method: 'createBucket', resource: name }).filter(row => row.outcome === 'created').length;

describe('SIGTERM to a worker', () => {
  it('lets what runs end, when it ends within the deadline; what waits goes to the others at once', async () => {
    const stopping = await appliance.worker({ TRIVET_SHUTDOWN_MS: '20000' });
    appliance.fake!.addFault({ method: 'createBucket', resource: 'ends', mode: 'delay', delayMs: 4_000 });
    const running = create('ends');
    await begun('ends');
    const other = await appliance.worker();
    stopping.signal('SIGTERM');
    await until('it is stopping', () => stopping.log().includes('"stopping"'));
    const started = performance.now();
    const outcomes = await Promise.all(Array.from({ length: 20 }, (_, n) => create(`meanwhile-${n}`)));
    expect(outcomes.map(({ code }) => code)).toEqual(Array(20).fill('OK'));
    // A ring that had gone lost would be made up for after three rounds.
    expect(performance.now() - started).toBeLessThan(2 * RECONCILE_MS);
    expect(await running).toMatchObject({ code: 'OK' });
    expect(await stopping.ended()).toEqual({ code: 0, signal: null });
    expect(await operation('ends')).toMatchObject({ state: 'succeeded', attempt: 1 });
    await other.stop();
  });

  it('hands back what does not end in time; another worker goes on when the open call can take no effect any more', async () => {
    // A call has 0.6 of the lease until nothing can come of it: 12 s.
    const env = { TRIVET_LEASE_MS: '20000', TRIVET_RECONCILE_MS: '1000' };
    const stopping = await appliance.worker({ ...env, TRIVET_SHUTDOWN_MS: '3000' });
    appliance.fake!.addFault({ method: 'createBucket', resource: 'handed', mode: 'delay', delayMs: 17_000 });
    const running = create('handed');
    await begun('handed');
    const other = await appliance.worker(env);
    const ended = await stopping.stop('SIGTERM');
    expect(ended, stopping.log().slice(-2_000)).toEqual({ code: 0, signal: null });
    const handed = await operation('handed');
    expect(handed).toMatchObject({ state: 'running', attempt: 1, lease_owner: null });
    expect(handed.left).toBeLessThan(12);
    expect(await running).toMatchObject({ code: 'OK' });
    // Handing back is no crash: a rolling restart must not park what takes long.
    expect(await operation('handed')).toMatchObject({ state: 'succeeded', attempt: 2, crashes: 0 });
    const [attempts] = await appliance.database.query<{ between: number }>(
      `SELECT extract(epoch FROM max(e.at) - min(e.at))::float8 AS between
         FROM trivet.operation_event e JOIN trivet.operation o ON o.id = e.operation_id
        WHERE o.resource_name = 'handed' AND e.type = 'attempt'`,
    );
    expect(attempts!.between).toBeGreaterThan(12);
    expect(attempts!.between).toBeLessThan(20);
    expect(effects('handed')).toBe(1);
    await other.stop();
    await appliance.worker();
  });

  it('ends at once when nothing runs', async () => {
    const started = performance.now();
    expect(await appliance.process('worker').stop()).toEqual({ code: 0, signal: null });
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});

describe('SIGTERM to a gateway', () => {
  it('answers who waits, removes its socket and ends; the work goes on, and a new gateway tells its end', async () => {
    await appliance.worker();
    const old: DaemonProcess = appliance.process('gateway');
    const gateway = await replaced(old);
    appliance.fake!.addFault({ method: 'createBucket', resource: 'left-alone', mode: 'delay', delayMs: 5_000 });
    const waiting = create('left-alone');
    await begun('left-alone');
    const ended = await gateway.stop('SIGTERM');
    expect(ended, gateway.log().slice(-2_000)).toEqual({ code: 0, signal: null });
    expect(['UNAVAILABLE', 'ABORTED']).toContain((await waiting).code);
    expect(existsSync(appliance.socketPath)).toBe(false);
    expect((await operation('left-alone')).state).toBe('running');
    await appliance.gateway();
    expect(await create('left-alone')).toMatchObject({ code: 'OK' });
    expect(await operation('left-alone')).toMatchObject({ state: 'succeeded', attempt: 1 });
    expect(effects('left-alone')).toBe(1);
  });

  /** A gateway with a shorter deadline in its place. */
  async function replaced(old: DaemonProcess): Promise<DaemonProcess> {
    expect(existsSync(appliance.socketPath)).toBe(true);
    expect(await old.stop('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(existsSync(appliance.socketPath)).toBe(false);
    return appliance.gateway({ TRIVET_SHUTDOWN_MS: '3000' });
  }
});
