import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '#platform/config/config';
import type { CosiClient } from '#test/cosi/client';
import { addTenant, type Door } from '#test/engine/second-tenant';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/** One tenant's flood and another's single call, at one worker with few places (invariant E9). */
const CAP = 4;
const PLACES = 8;
const FLOOD = 300;

/** So many at once may wait too long for a connection to the database; then they come again. */
async function untilAccepted(client: CosiClient, name: string): Promise<void> {
  for (let attempt = 1; attempt < 20; attempt++) {
    const { code } = await client.call('v1alpha1', 'DriverCreateBucket', { name }, 60_000);
    if (code === 'OK') return;
    expect(['ABORTED', 'UNAVAILABLE']).toContain(code);
  }
  throw new Error(`${name} was refused again and again`);
}

it('leaves places for others by default', () => {
  const { TRIVET_WORKER_CONCURRENCY: places, TRIVET_TENANT_CAP: cap } = loadConfig([], {});
  expect(places).toBeGreaterThanOrEqual(2 * cap);
});

describe.each([
  { name: 'with Redis', redis: true },
  { name: 'without Redis', redis: false },
])('fairness, $name', ({ redis }) => {
  let appliance: TestAppliance;
  let other: Door;
  beforeAll(async () => {
    const env = { TRIVET_LEASE_MS: '12000', TRIVET_TENANT_CAP: `${CAP}`, TRIVET_WORKER_CONCURRENCY: `${PLACES}` };
    appliance = await TestAppliance.create({ backend: 'fake', redis, env });
    await appliance.database.query('UPDATE trivet.backend SET config = config || \'{"latencyMs": 30}\'');
    await Promise.all([appliance.gateway(), appliance.worker()]);
    other = await addTenant(appliance, 'other');
  });
  afterAll(async () => {
    await other?.close();
    await appliance?.close();
  });
  afterEach(() => appliance.fake!.clearFaults());

  it('delays no tenant behind the queue of another, and keeps each below its cap', async () => {
    const clients = Array.from({ length: 4 }, () => appliance.client());
    const flood = Array.from({ length: FLOOD }, (_, n) => untilAccepted(clients[n % 4]!, `flood-${n}`));
    const pending = async () => (await appliance.operations("state IN ('pending', 'running')")).length;
    await until('the queue is long', async () => (await pending()) > FLOOD / 2);
    let most = 0;
    let watching = true;
    const watch = (async () => {
      while (watching) {
        const [row] = await appliance.database.query<{ n: number }>(
          "SELECT count(*)::int AS n FROM trivet.operation WHERE state = 'running' AND tenant_id <> $1",
          [other.tenantId],
        );
        most = Math.max(most, row!.n);
      }
    })();

    for (let n = 0; n < 3; n++) {
      expect(await other.createBucket(`single-${n}`)).toBe('OK');
      // Created, asked and answered while most of the flood still waits.
      expect(await pending()).toBeGreaterThan(FLOOD / 4);
    }
    await Promise.all(flood);
    await appliance.settled();
    watching = false;
    await watch;
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(CAP);
    expect(await appliance.operations("state <> 'succeeded'")).toEqual([]);
    expect(appliance.fake!.buckets()).toHaveLength(FLOOD + 3);
  }, 85_000);

  it('lets no tenant whose backend is deaf keep all places of a worker', async () => {
    appliance.fake!.addFault({ method: 'inspectBucket', resource: 'deaf-*', mode: 'hang', count: CAP });
    const client = appliance.client();
    const deaf = Array.from({ length: 2 * PLACES }, (_, n) =>
      client.call('v1alpha1', 'DriverCreateBucket', { name: `deaf-${n}` }, 20_000),
    );
    await until('as many as may are stuck', () => {
      return appliance.fake!.calls({ method: 'inspectBucket', resource: 'deaf-*' }).length >= CAP;
    });
    const started = performance.now();
    expect(await other.createBucket('not-deaf')).toBe('OK');
    // A call of them is given up after 3.6 s.
    expect(performance.now() - started).toBeLessThan(3_000);
    await Promise.all(deaf);
    await appliance.settled();
    expect(await appliance.operations("state <> 'succeeded'")).toEqual([]);
  });
});
