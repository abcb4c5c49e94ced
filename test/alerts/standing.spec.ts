import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { Findings } from '#alerts/findings/findings';
import { uuidv7 } from '#platform/uuid';
import { AdminHouse } from '#test/admin/admin-house';

/** What is wrong with the appliance itself, and how it is used. */
let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create();
});
afterAll(() => house?.close());
afterEach(async () => {
  for (const table of ['appliance_backup', 'tenant_quota', 'login_throttle', 'cluster', 'operation'])
    await house.query(`DELETE FROM trivet.${table}`);
});

const RULES = ['backup_old', 'quota_nearly_used', 'logins_failing', 'cluster_silent', 'cluster_certificate'];
const found = async (tenantId?: string) => {
  const { workers, names } = house.options;
  const { findings } = await new Findings({ database: house.database, workers, names }).look(
    [],
    { causes: 5, told: false },
    tenantId,
  );
  return findings.filter(({ rule }) => RULES.includes(rule)).map(({ rule, object }) => `${rule} ${object}`.trim());
};
const backup = (days: number) =>
  house.query(
    `INSERT INTO trivet.appliance_backup (taken_at, release, host, file, rows, bytes)
     VALUES (now() - $1 * interval '1 day', '1', 'node', 'state.tar', 1, 1)`,
    [days],
  );

it('the newest backup is old when it is older than eight days, and not when nobody makes any', async () => {
  expect(await found()).toEqual([]);
  await backup(20);
  await backup(9);
  expect(await found()).toEqual(['backup_old']);
  await backup(7);
  expect(await found()).toEqual([]);
});

it('a quota is nearly used from 90 % on, and not when it allows nothing', async () => {
  const quota = (value: number) =>
    house.query(
      `INSERT INTO trivet.tenant_quota (tenant_id, key, value) VALUES ($1, 'operations', $2)
       ON CONFLICT (tenant_id, key) DO UPDATE SET value = excluded.value`,
      [house.acme.id, value],
    );
  for (let n = 0; n < 9; n++)
    await house.query(
      `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name, request, actor)
       VALUES ($1, $2, 'bucket.create', 'fast', $3, 'bucket', $2, 'photos', '{}', 'ann')`,
      [house.acme.id, uuidv7(), house.acme.backends.fake],
    );
  await quota(10);
  expect(await found()).toEqual(['quota_nearly_used acme/operations']);
  await quota(11);
  expect(await found()).toEqual([]);
  await quota(0);
  expect(await found()).toEqual([]);
});

it('logins fail when ten of them are not forgiven; whom nobody knows is not named', async () => {
  const hashed = (name: string) => `account:${createHash('sha256').update(name).digest('hex')}`;
  const fail = (subject: string, failures: number, minutesAgo = 0) =>
    house.query(
      `INSERT INTO trivet.login_throttle (subject, failures, blocked_until, failed_at)
       VALUES ($1, $2, now(), now() - $3 * interval '1 minute')`,
      [subject, failures, minutesAgo],
    );
  await fail('address:192.0.2.7', 12);
  await fail('address:192.0.2.8', 9);
  await fail('address:192.0.2.9', 12, 3);
  await fail(hashed(house.acme.admin.username), 10);
  await fail(hashed('a password in the wrong field'), 10);
  expect((await found()).sort()).toEqual([
    `logins_failing account ${house.acme.admin.username}`,
    'logins_failing address 192.0.2.7',
    expect.stringMatching(/^logins_failing an account that nobody has, [0-9a-f]{8}$/),
  ]);
});

it('clusters are silent, and their certificates end', async () => {
  const cluster = (name: string, silent: string, until: string) =>
    house.query(
      `INSERT INTO trivet.cluster (tenant_id, id, name, release, certificate_serial, certificate_until, seen_at)
       VALUES ($1, $2, $3, '1', '1', now() + $5::interval, now() - $4::interval)`,
      [house.acme.id, uuidv7(), name, silent, until],
    );
  await cluster('well', '10 seconds', '30 days');
  await cluster('silent', '3 minutes', '30 days');
  await cluster('ending', '10 seconds', '9 days');
  expect((await found()).sort()).toEqual(['cluster_certificate acme/ending', 'cluster_silent acme/silent']);
  expect(await found(house.acme.id)).toEqual([]);
});
