import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '#platform/database/database';
import { PerformancePolicies } from '#storage/block/protection/policies';
import { checkPerformancePolicy, protect } from '#storage/block/protection/protect';
import { ProtectionHouse, weekly } from '#test/protection/protection-house';

let house: ProtectionHouse;
beforeAll(async () => {
  house = await ProtectionHouse.create();
  await house.templates.add('mine', [weekly('weekly', 3), weekly('other', 3)]);
});
afterEach(() => house.empty());
afterAll(() => house?.close());

const rows = (volume: string) =>
  house.query<{ schedule: string; template: string; next_run_at: Date }>(
    `SELECT p.schedule, t.name AS template, p.next_run_at FROM trivet.volume_protection p
       JOIN trivet.protection_template t ON t.id = p.template_id WHERE volume_id = $1 ORDER BY schedule`,
    [volume],
  );
const give = (volume: string, template: string | null) =>
  house.inTenant(tx => protect(tx, house.tenantId, volume, template));

describe('a template', () => {
  it('is shipped to every tenant, under the names that drivers ask for', async () => {
    const neighbour = await house.neighbour();
    for (const { templates } of [house, neighbour]) {
      const shipped = (await templates.list()).filter(template => template.shipped);
      expect(
        shipped.map(({ name, schedules }) => [name, schedules.map(({ name, retain }) => `${retain} ${name}`)]),
      ).toEqual([
        ['Retain-30Daily', ['30 daily']],
        ['Retain-48Hourly-30Daily-52Weekly', ['48 hourly', '30 daily', '52 weekly']],
        ['Retain-90Daily', ['90 daily']],
      ]);
    }
    const volume = await house.volume('Retain-48Hourly-30Daily-52Weekly');
    const due = await rows(volume);
    expect(due.map(({ schedule }) => schedule)).toEqual(['daily', 'hourly', 'weekly']);
    const [daily, hourly, sunday] = due.map(({ next_run_at }) => next_run_at);
    expect(daily!.toISOString()).toMatch(/T00:00:00.000Z$/);
    expect(hourly!.toISOString()).toMatch(/:00:00.000Z$/);
    expect([sunday!.getUTCDay(), sunday!.getUTCHours()]).toEqual([0, 0]);
  });

  it('that is given again changes nothing; another one or none takes its place', async () => {
    const volume = await house.volume('mine');
    await house.query("UPDATE trivet.volume_protection SET next_run_at = '2030-01-01'");
    await give(volume, 'mine');
    expect((await rows(volume)).map(row => row.next_run_at.getUTCFullYear())).toEqual([2030, 2030]);
    await give(volume, 'Retain-30Daily');
    expect((await rows(volume)).map(row => [row.template, row.schedule])).toEqual([['Retain-30Daily', 'daily']]);
    await give(volume, null);
    expect(await rows(volume)).toEqual([]);
  });

  it('that is unknown, or a neighbour’s, is refused with its field, and nothing is changed', async () => {
    const neighbour = await house.neighbour();
    await neighbour.templates.add('theirs', [weekly('weekly', 1)]);
    const volume = await house.volume('mine');
    for (const name of ['unknown', 'theirs', ''])
      await expect(give(volume, name)).rejects.toMatchObject({
        kind: 'invalid_argument',
        field: 'protectionTemplate',
      });
    expect((await rows(volume)).map(row => row.template)).toEqual(['mine', 'mine']);
  });

  it('is removed when no volume has it: neither a shipped one nor one in use, but one whose volumes are gone', async () => {
    await house.templates.add('old', [weekly('weekly', 1)]);
    const volume = await house.volume('old');
    const remove = (name: string) => house.templates.remove(name);
    await expect(remove('old')).rejects.toMatchObject({ kind: 'failed_precondition' });
    await expect(remove('Retain-30Daily')).rejects.toMatchObject({ kind: 'failed_precondition' });
    await expect(remove('unknown')).rejects.toMatchObject({ kind: 'not_found' });
    await house.query("UPDATE trivet.volume SET state = 'gone' WHERE id = $1", [volume]);
    await remove('old');
    expect((await house.templates.list()).map(({ name }) => name)).not.toContain('old');
  });

  it.each([
    ['a name with a blank', 'my template', [weekly('a', 1)]],
    ['no schedule', 'x', []],
    ['two schedules of one name', 'x', [weekly('a', 1), weekly('a', 2)]],
    ['a period of a minute', 'x', [{ ...weekly('a', 1), everyMinutes: 1, atMinutes: 0 }]],
    ['a period of a fortnight', 'x', [{ ...weekly('a', 1), everyMinutes: 20_160 }]],
    ['a beginning outside of its period', 'x', [{ ...weekly('a', 1), everyMinutes: 60, atMinutes: 60 }]],
    ['nothing retained', 'x', [weekly('a', 0)]],
    ['a name for a schedule with a colon', 'x', [weekly('a:b', 1)]],
  ])('with %s is refused', async (_, name, schedules) => {
    await expect(house.templates.add(name, schedules)).rejects.toMatchObject({ kind: 'invalid_argument' });
  });

  it('has a name of its own', async () => {
    await expect(house.templates.add('mine', [weekly('a', 1)])).rejects.toMatchObject({ kind: 'already_exists' });
  });
});

describe('a performance policy', () => {
  const check = (name: string) => house.inTenant(tx => checkPerformancePolicy(tx, house.tenantId, name));
  let database: Database;
  let policies: PerformancePolicies;
  beforeAll(async () => {
    database = await house.connect();
    policies = new PerformancePolicies(database, house.tenantId);
  });
  afterAll(() => database?.close());

  it.each(['default', 'SQL Server', 'Exchange 2010 data store', 'Other Workloads'])('%s is shipped', async name => {
    expect(await check(name)).toEqual({});
  });

  it('that is unknown is refused with its field', async () => {
    for (const name of ['sql server', '', 'unknown'])
      await expect(check(name)).rejects.toMatchObject({ kind: 'invalid_argument', field: 'performancePolicy' });
  });

  it('of one’s own says what volumes get whose creator does not say', async () => {
    await policies.add('Archive', 'cold data', { thick: 'false', pool: 'slow' });
    expect(await check('Archive')).toEqual({ thick: 'false', pool: 'slow' });
    await expect(policies.add('Archive', '', {})).rejects.toMatchObject({ kind: 'already_exists' });
    await policies.remove('Archive');
    await expect(policies.remove('Archive')).rejects.toMatchObject({ kind: 'not_found' });
    await expect(policies.remove('default')).rejects.toMatchObject({ kind: 'failed_precondition' });
  });

  it.each([
    ['cache', 'true'],
    ['thick', 'yes'],
    ['limit_iops', '0'],
    ['limit_mbps', '1.5'],
    ['pool', ''],
    ['__proto__', 'x'],
    ['toString', 'x'],
  ])('cannot set %s to %j', async (key, value) => {
    await expect(policies.add('Odd', '', Object.fromEntries([[key, value]]))).rejects.toMatchObject({
      kind: 'invalid_argument',
      field: key,
    });
  });
});
