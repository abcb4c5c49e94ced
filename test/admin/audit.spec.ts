import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { auditEntry } from '#admin/contract/overview';
import { sql } from '#platform/database/sql';
import { audit } from '#tenancy/audit-log/audit-log';
import { AuditReader } from '#tenancy/audit-log/audit-reader';
import { AdminHouse, type HouseTenant, type Person } from '#test/admin/admin-house';

/** The audit log as people read it: newest first in pages, or all of it as lines. */
let house: AdminHouse;
let tenant: HouseTenant;
const ENTRIES = 1_205;
beforeAll(async () => {
  house = await AdminHouse.create();
  tenant = await house.tenant('audited');
  await house.query(
    `INSERT INTO trivet.audit_entry (tenant_id, tenant_name, actor_kind, actor, address, action, subject_kind, subject_id,
                                     subject_name, after, at)
     SELECT $1, 'audited', 'user', 'ann@audited', '192.0.2.7', CASE n % 3 WHEN 0 THEN 'user.create' ELSE 'volume.change' END,
            'thing', n::text, 'thing-' || n, jsonb_build_object('n', n), now() - (2000 - n) * interval '1 minute'
       FROM generate_series(1, $2::int) AS n`,
    [tenant.id, ENTRIES],
  );
});
afterAll(() => house?.close());

const list = (who: Person, query: Record<string, string> = {}) => house.call(who, 'GET', '/audit', { query });
const names = (body: { items: { subject: { name: string } }[] }) => body.items.map(({ subject }) => subject.name);

async function exported(who: Person, query: Record<string, string> = {}) {
  const reply = await house.call(who, 'GET', '/audit/export', { query });
  expect(reply.status).toBe(200);
  expect(reply.headers['content-type']).toMatch(/^application\/x-ndjson/);
  const lines = String(reply.body).split('\n').filter(Boolean);
  return lines.map(line => auditEntry.parse(JSON.parse(line)));
}

it('a change has who made it, by which token if by one, and from where', async () => {
  const { admin } = await house.tenant('noted');
  const body = { name: 'ann', role: 'viewer', password: 'horse of ann' };
  const path = '/tenants/noted/users';
  expect((await house.call(admin, 'POST', path, { body, address: '203.0.113.9' })).status).toBe(201);
  const { headers } = await house.login(admin);
  const options = { body: { ...body, name: 'bob' }, headers, address: '2001:db8::7' };
  expect((await house.call(undefined, 'POST', path, options)).status).toBe(201);
  const { items } = (await list(admin, { action: 'user.create' })).body;
  expect(items.map(({ actor }: { actor: object }) => actor)).toEqual([
    { kind: 'user', name: admin.username, token: null, address: '2001:db8::7' },
    { kind: 'token', name: admin.username, token: 'house', address: '203.0.113.9' },
  ]);
  expect(items.map(({ door }: { door: string }) => door)).toEqual(['admin', 'admin']);
});

it.each([
  "UPDATE trivet.audit_entry SET actor = 'nobody'",
  'DELETE FROM trivet.audit_entry',
  'TRUNCATE trivet.audit_entry',
])('an entry stays as it was written: %s is refused to every role that the appliance works with', async statement => {
  const roles = [
    () => house.database.withTenant(tenant.id, tx => tx.query(sql('', statement))),
    () => house.database.engine(sql('', statement)),
  ];
  for (const work of roles) {
    const error = await work().catch((thrown: Error) => thrown);
    // A cause is what PostgreSQL said.
    expect(String((error as Error).cause ?? error)).toContain('permission denied');
  }
});

describe('the list', () => {
  it('has every entry once, newest first, and a tenant only its own', async () => {
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { status, body } = await list(tenant.viewer, { limit: '200', ...(cursor ? { cursor } : {}) });
      expect(status).toBe(200);
      seen.push(...names(body));
      cursor = body.next;
    }
    expect(seen).toEqual(Array.from({ length: ENTRIES }, (_, n) => `thing-${ENTRIES - n}`));
    expect(names((await list(house.beta.admin)).body)).not.toContain('thing-1');
    expect((await list(house.beta.admin, { tenant: 'audited' })).status).toBe(404);
    const all = await list(house.root.viewer, { tenant: 'audited', limit: '1' });
    expect(all.body.items[0]).toMatchObject({
      tenant: 'audited',
      actor: { kind: 'user', name: 'ann@audited', token: null, address: '192.0.2.7' },
      after: { n: ENTRIES },
    });
  });

  it.each<[Record<string, string>, number]>([
    [{ action: 'user.' }, Math.floor(ENTRIES / 3)],
    [{ action: 'user.create' }, Math.floor(ENTRIES / 3)],
    [{ action: 'user%' }, 0],
    [{ actor: 'ann@audited' }, ENTRIES],
    [{ actor: 'bob@audited' }, 0],
    [{ subject: 'thing-7' }, 1],
    [{ subject: '7' }, 1],
  ])('by %o', async (query, count) => {
    expect(await exported(tenant.admin, query)).toHaveLength(count);
    expect(await exported(house.root.admin, { ...query, tenant: 'audited' })).toHaveLength(count);
    const { body } = await list(tenant.viewer, { ...query, limit: '200' });
    expect(body.items).toHaveLength(Math.min(count, 200));
  });

  it('by time', async () => {
    const { body } = await list(tenant.viewer, { limit: '1', action: 'volume.' });
    const { at } = body.items[0];
    expect(await exported(tenant.admin, { until: at })).toHaveLength(ENTRIES - 1);
    expect(await exported(tenant.admin, { since: at })).toHaveLength(1);
  });

  it('still has what was done to a tenant that is gone', async () => {
    const reply = await list(house.root.viewer, { tenant: 'never-there' });
    expect(reply).toMatchObject({ status: 200, body: { items: [], next: null } });
  });
});

describe('the export', () => {
  it('has all of it, oldest first', async () => {
    const entries = await exported(tenant.admin);
    expect(entries.map(({ subject }) => subject.name)).toEqual(
      Array.from({ length: ENTRIES }, (_, n) => `thing-${n + 1}`),
    );
    expect((await house.call(tenant.operator, 'GET', '/audit/export')).status).toBe(403);
  });

  it('reads the next portion when the one before was taken, and not sooner', async () => {
    let reads = 0;
    const reader = new AuditReader(
      new Proxy(house.database, {
        get(target, property) {
          if (property === 'withTenant') reads++;
          const value = target[property as keyof typeof target];
          return typeof value === 'function' ? value.bind(target) : value;
        },
      }),
    );
    const portions = reader.export({ tenantId: tenant.id }, {});
    expect((await portions.next()).value).toHaveLength(500);
    expect(reads).toBe(1);
    await portions.next();
    expect(reads).toBe(2);
    await portions.return(undefined);
  });

  it('masks what was a secret before it was written', async () => {
    await house.database.withTenant(tenant.id, tx =>
      audit(
        tx,
        { kind: 'user', name: 'ann@audited', address: '' },
        {
          tenantId: tenant.id,
          tenantName: 'audited',
          action: 'secret.try',
          subject: { kind: 'thing' },
          after: { password: 'canary-of-audit' },
        },
      ),
    );
    const reply = await house.call(tenant.admin, 'GET', '/audit/export', { query: { action: 'secret.' } });
    expect(reply.body).toContain('secret.try');
    expect(reply.body).not.toContain('canary-of-audit');
  });
});
