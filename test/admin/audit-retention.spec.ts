import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { sql } from '#platform/database/sql';
import { AuditRetention } from '#tenancy/audit-log/audit-retention';
import { AdminHouse, type HouseTenant } from '#test/admin/admin-house';
import { until } from '#test/support/parts';

/** Old entries of the audit log go, and nothing of that goes unsaid. */
let house: AdminHouse;
let tenant: HouseTenant;
beforeAll(async () => {
  house = await AdminHouse.create();
  tenant = await house.tenant('kept');
});
afterAll(() => house?.close());

/** As many entries as ages are given, each so many days old. */
beforeEach(async () => {
  await house.query("DELETE FROM trivet.audit_entry WHERE tenant_id = $1 OR action = 'audit.prune'", [tenant.id]);
  await house.query('UPDATE trivet.audit_entry SET at = now()');
});
// In front of all others: numbers are in the order of time.
let oldest = 0;
async function entries(...ages: number[]): Promise<void> {
  for (const age of ages.toSorted((a, b) => a - b))
    await house.query(
      `INSERT INTO trivet.audit_entry (tenant_id, seq, tenant_name, actor_kind, actor, action, subject_kind, subject_name, at)
       OVERRIDING SYSTEM VALUE
       VALUES ($1, $2, 'kept', 'user', 'ann@kept', 'thing.make', 'thing', $3, now() - $4 * interval '1 day')`,
      [tenant.id, --oldest, `of-${age}`, age],
    );
}
const left = async (): Promise<string[]> =>
  (
    await house.query<{ name: string }>(
      "SELECT subject_name AS name FROM trivet.audit_entry WHERE action = 'thing.make' ORDER BY seq",
    )
  ).map(({ name }) => name);
const said = async () => {
  const { status, body } = await house.call(house.root.viewer, 'GET', '/audit', { query: { action: 'audit.prune' } });
  expect(status).toBe(200);
  return body.items;
};
const PRUNE = sql('', 'SELECT trivet.prune_audit(30, 100) AS removed');

describe('what is removed', () => {
  it('is what is older than the log is kept, with an entry for the appliance that says so', async () => {
    await entries(90, 40, 31, 29, 1);
    await new AuditRetention(house.database, 30).run();
    expect(await left()).toEqual(['of-29', 'of-1']);
    const [entry, ...others] = await said();
    expect(others).toEqual([]);
    expect(entry).toMatchObject({
      tenant: 'appliance',
      actor: { kind: 'system', name: 'retention' },
      before: { entries: 3, first: expect.any(String), last: expect.any(String) },
      after: { keepDays: 30 },
    });
    const days = (text: string) => Math.round((Date.now() - Date.parse(text)) / 86_400_000);
    expect([days(entry.before.first), days(entry.before.last)]).toEqual([90, 31]);
    const { body } = await house.call(tenant.viewer, 'GET', '/audit', { query: { action: 'audit.prune' } });
    expect(body.items).toEqual([]);
  });

  it('goes a portion in each run, which says whether there is more', async () => {
    await entries(95, 94, 93, 92, 91);
    const retention = new AuditRetention(house.database, 30, 2);
    const seen: [unknown, number][] = [];
    for (let n = 0; n < 4; n++) {
      const more = await retention.run();
      seen.push([more, (await left()).length]);
    }
    expect(seen).toEqual([
      ['more', 3],
      ['more', 1],
      [undefined, 0],
      [undefined, 0],
    ]);
    expect((await said()).map(({ before }: { before: { entries: number } }) => before.entries)).toEqual([1, 2, 2]);
  });

  it('waits until the oldest is a day too old: an entry a day about it, not one for each look', async () => {
    await entries(30.5, 30.2, 3);
    await new AuditRetention(house.database, 30).run();
    expect(await left()).toHaveLength(3);
    expect(await said()).toEqual([]);
    await entries(31.1);
    await new AuditRetention(house.database, 30).run();
    expect(await left()).toEqual(['of-3']);
    expect(await said()).toHaveLength(1);
  });

  it('is nothing where all is kept', async () => {
    await entries(9_000);
    const engine = vi.spyOn(house.database, 'engine');
    await new AuditRetention(house.database, 0).run();
    expect(engine).not.toHaveBeenCalled();
    engine.mockRestore();
    expect(await left()).toHaveLength(1);
  });
});

describe('whoever removes', () => {
  const client = async () => {
    const made = new pg.Client(house.appliance.database.engineUrl);
    made.on('error', () => undefined);
    await made.connect();
    return made;
  };

  it('and dies has removed nothing, nor said that it did', async () => {
    await entries(90, 40);
    const dying = await client();
    await dying.query('BEGIN');
    expect((await dying.query(PRUNE.text)).rows).toEqual([{ removed: 2 }]);
    const [{ pid }] = (await dying.query('SELECT pg_backend_pid() AS pid')).rows;
    const gone = new Promise(resolve => dying.once('end', resolve));
    await house.query('SELECT pg_terminate_backend($1)', [pid]);
    await gone;
    expect(await left()).toHaveLength(2);
    expect(await said()).toEqual([]);
    await new AuditRetention(house.database, 30).run();
    expect(await left()).toEqual([]);
    expect(await said()).toHaveLength(1);
  });

  it('is one at a time', async () => {
    await entries(90, 40);
    const first = await client();
    try {
      await first.query('BEGIN');
      await first.query(PRUNE.text);
      expect(await house.database.engine(PRUNE)).toEqual([{ removed: 0 }]);
      await first.query('COMMIT');
    } finally {
      await first.end();
    }
    expect(await said()).toHaveLength(1);
  });

  it('is a worker: gateways cannot, and nobody can below a day', async () => {
    await entries(90);
    const refusal = async (work: Promise<unknown>) => {
      const error = await work.catch((thrown: Error) => thrown);
      return String((error as Error).cause ?? error);
    };
    expect(await refusal(house.database.withTenant(tenant.id, tx => tx.query(PRUNE)))).toContain('permission denied');
    for (const days of ['0', 'NULL', '-1']) {
      const statement = sql('', `SELECT trivet.prune_audit(${days}, 100)`);
      expect(await refusal(house.database.engine(statement))).toContain('for a day at least');
    }
    expect(await left()).toHaveLength(1);
  });

  it('does so by itself, as it is set', async () => {
    await entries(60, 45, 2);
    await house.appliance.worker({ TRIVET_AUDIT_LOG_DAYS: '50' });
    await until('the old one is gone', async () => (await left()).length === 2);
    expect(await left()).toEqual(['of-45', 'of-2']);
    expect(await said()).toMatchObject([{ after: { keepDays: 50 } }]);
  });
});
