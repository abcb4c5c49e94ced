import { afterAll, beforeAll, expect, it } from 'vitest';
import { endReleasesBefore } from '#platform/migrations/0035-oldest-release';
import { SCHEMA_VERSION } from '#platform/schema/schema-version';
import { type Role, TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const SAID = /with which this one can no longer run: update this program/;
let appliance: TestAppliance;
beforeAll(async () => {
  appliance = await TestAppliance.start({ backend: 'fake' });
  const { database } = appliance;
  const next = SCHEMA_VERSION + 10;
  await database.query('INSERT INTO trivet.migration ("timestamp", name) VALUES ($1, $2)', [next, 'Next']);
});
afterAll(() => appliance?.close());

it('a newer schema is no reason to stop', async () => {
  await appliance.process('gateway').ready();
  await appliance.process('worker').ready();
});

it('what runs says once that it is too old, and is not ready; what is started ends with 78', async () => {
  await appliance.database.query(endReleasesBefore(SCHEMA_VERSION + 10));
  const running = [...appliance.processes];
  for (const process of running) {
    await until(`${process.role} says so`, async () => {
      const { database } = await process.checks();
      return database?.reason !== undefined && SAID.test(database.reason);
    });
    await process.checks();
    expect(process.log().match(new RegExp(SAID, 'g'))).toHaveLength(1);
    expect(process.exited).toBe(false);
  }
  for (const role of ['gateway', 'worker'] as Role[]) {
    await expect(appliance[role]()).rejects.toThrow(`${role} ended at start`);
    const refused = appliance.process(role);
    expect(await refused.ended()).toMatchObject({ code: 78 });
    const lines = refused
      .log()
      .split('\n')
      .filter(line => line.startsWith('trivet: configuration: '));
    expect(lines).toEqual([expect.stringMatching(SAID)]);
  }
});
