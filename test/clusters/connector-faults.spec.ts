import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pausedWorkers } from '#test/admin/resource-calls';
import { type Connector, ConnectorHouse } from '#test/clusters/connector-house';
import type { CosiClient } from '#test/cosi/client';
import { until } from '#test/support/parts';

const CALLS = 100;
/** Of all calls; as many sidecars have fewer. */
const CLIENTS = 20;
const BACK_OFF_MS = 50;

/** Two gateways and two connectors of one cluster, which die one after the other with calls under way. */
let house: ConnectorHouse;
let connectors: Connector[];
beforeAll(async () => {
  house = await ConnectorHouse.open();
  const first = await house.connector();
  await first.process.ready();
  connectors = [first, await house.connector({ beside: first })];
  await connectors[1]!.process.ready();
}, 120_000);
afterAll(() => house?.close());

const clientsOf = (all: readonly Connector[]): CosiClient[] =>
  Array.from({ length: CLIENTS }, (_, n) => house.cosi(all[n % all.length]!.sockets.cosi));

/** How often the store was made to make each of these buckets. */
function creations(prefix: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { method, resource, phase, outcome } of house.house.appliance.fake!.calls())
    if (method === 'createBucket' && phase === 'effect' && outcome === 'created' && resource.startsWith(prefix))
      counts.set(resource, (counts.get(resource) ?? 0) + 1);
  return counts;
}

const create = async (client: CosiClient, name: string): Promise<string> =>
  (await client.call('v1alpha1', 'DriverCreateBucket', { name })).code;

describe('calls that are under way', () => {
  it('are UNAVAILABLE when their gateway dies, and have one effect when they are made again', async () => {
    const clients = clientsOf(connectors);
    const names = Array.from({ length: CALLS }, (_, n) => `held-${n}`);
    const ends: string[] = [];
    const calls: Promise<unknown>[] = [];
    {
      await using _ = await pausedWorkers(house.house);
      calls.push(...names.map(async (name, n) => ends.push(await create(clients[n % CLIENTS]!, name))));
      await until('all are accepted', async () => {
        const rows = await house.house.query("SELECT FROM trivet.operation WHERE resource_name LIKE 'held-%'");
        return rows.length === CALLS;
      });
      expect(ends).toEqual([]);
      await house.gateways[0]!.stop('SIGKILL');
      await until('some have ended', () => ends.length > 0);
      await house.gateways[1]!.stop('SIGKILL');
      await Promise.all(calls);
      expect(ends).toEqual(Array(CALLS).fill('UNAVAILABLE'));
      for (const at of [0, 1]) await house.startGateway(at);
    }
    await Promise.all(
      names.map((name, n) =>
        until(`${name} is made`, async () => (await create(clients[n % CLIENTS]!, name)) === 'OK'),
      ),
    );
    expect([...creations('held-').values()]).toEqual(Array(CALLS).fill(1));
  }, 120_000);

  it('are UNAVAILABLE when their connector dies, at once, and those of the other one go on', async () => {
    const [dies, stays] = connectors.map(({ sockets }) => house.cosi(sockets.cosi));
    {
      await using _ = await pausedWorkers(house.house);
      const [lost, kept] = [create(dies!, 'lost-1'), create(stays!, 'lost-2')];
      await until('both are accepted', async () => {
        const rows = await house.house.query("SELECT FROM trivet.operation WHERE resource_name LIKE 'lost-%'");
        return rows.length === 2;
      });
      await connectors[0]!.process.stop('SIGKILL');
      expect(await lost).toBe('UNAVAILABLE');
      house.house.appliance.process('worker').signal('SIGCONT');
      expect(await kept).toBe('OK');
    }
    await house.restart(connectors[0]!);
    await until('it is made', async () => (await create(dies!, 'lost-1')) === 'OK');
    expect([...creations('lost-').values()]).toEqual([1, 1]);
  });
});

describe('a load', () => {
  it('loses no call and has none carried out twice while gateways and connectors die, and certificates are renewed', async () => {
    const clients = clientsOf(connectors);
    let isOver = false;
    const codes = new Map<string, number>();
    const made: string[] = [];
    const caller = async (number: number): Promise<void> => {
      const client = clients[number % CLIENTS]!;
      for (let n = 0; !isOver; n++) {
        const name = `load-${number}-${n}`;
        for (;;) {
          const code = await create(client, name);
          codes.set(code, (codes.get(code) ?? 0) + 1);
          if (code === 'OK') break;
          if (code !== 'UNAVAILABLE') throw new Error(`${name}: ${code}`);
          await delay(BACK_OFF_MS);
        }
        made.push(name);
      }
    };
    const callers = Array.from({ length: CALLS }, (_, number) => caller(number));
    const goesOn = (): Promise<unknown> => {
      const before = made.length;
      return until('calls go on', () => made.length > before + CALLS, 60_000);
    };
    const identity = () => readFileSync(join(connectors[0]!.home, 'connector', 'identity.pem'), 'utf8');
    const first = identity();
    const path = `/tenants/acme/clusters/${connectors[0]!.cluster}/rotate`;
    expect((await house.house.call(house.acme.admin, 'POST', path, { body: {} })).status).toBe(200);
    try {
      for (const at of [0, 1]) {
        await goesOn();
        await house.gateways[at]!.stop('SIGKILL');
        await goesOn();
        await house.startGateway(at);
        await goesOn();
        await connectors[at]!.process.stop('SIGKILL');
        await goesOn();
        await house.restart(connectors[at]!);
      }
      await until('the certificate was renewed meanwhile', () => identity() !== first);
      await goesOn();
    } finally {
      isOver = true;
    }
    await Promise.all(callers);
    expect(codes.get('UNAVAILABLE') ?? 0).toBeGreaterThan(0);
    const counts = creations('load-');
    expect(counts.size).toBe(made.length);
    expect([...counts].filter(([, count]) => count !== 1)).toEqual([]);
  }, 300_000);
});
