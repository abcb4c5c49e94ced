import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeSealed } from '#platform/crypto/secrets';
import { ensureLauncherToken } from '#tenancy/tokens/launcher-token';
import { adminJob } from '#test/safety/admin-job';
import { TestAppliance } from '#test/support/appliance';
import { CSP_PASSWORD } from '#test/support/block-folders';
import { until } from '#test/support/parts';

/**
 * Every secret has a value of its own; the main job runs, in its good and its bad turns; then everything that is written
 * anywhere is searched for them (promise P6). Only sealed columns may hold one, and not in the clear.
 */
let appliance: TestAppliance;
const secrets = new Map<string, string>();
const commandLines = new Set<string>();
/** Files of the folder of tgtd, while a target was there. */
const besideTgtd = new Map<string, string>();
let redisMonitor: Redis;
const redisTraffic: string[] = [];

/** A secret travels in these forms. */
const forms = (secret: string): string[] => {
  const bytes = Buffer.from(secret);
  return [secret, encodeURIComponent(secret), bytes.toString('base64').replace(/=+$/, ''), bytes.toString('hex')];
};

function found(text: string): string[] {
  return [...secrets].filter(([, secret]) => forms(secret).some(form => text.includes(form))).map(([name]) => name);
}

const passwordOf = (url: string): string => decodeURIComponent(new URL(url).password);

/** The arguments of every process of the machine, now. */
function sampleCommandLines(): void {
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      commandLines.add(readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
    } catch {
      // It has ended meanwhile.
    }
  }
}

const ADMIN_PASSWORD = 'an admin of tests';

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-safety-'));
  const adminFile = join(folder, 'admin-password');
  writeFileSync(adminFile, ADMIN_PASSWORD, { mode: 0o600 });
  appliance = await TestAppliance.create({
    backend: 'fake',
    block: 'xfs',
    env: { TRIVET_LEASE_MS: '6000', TRIVET_LOG_LEVEL: 'trace', TRIVET_ADMIN_PASSWORD_FILE: adminFile },
  });
  rmSync(folder, { recursive: true });
  const { env } = appliance;
  secrets.set('key-encryption key', readFileSync(env.TRIVET_KEK_FILE!, 'utf8').trim());
  secrets.set('password of the application role', passwordOf(env.TRIVET_DATABASE_URL!));
  secrets.set('password of the engine role', passwordOf(env.TRIVET_DATABASE_ENGINE_URL!));
  secrets.set('password of Redis', passwordOf(env.TRIVET_REDIS_URL!));
  // As of a real store: the fake takes and ignores them, but they are sealed, opened and handed on.
  const canary = { accessKeyId: 'CANARYKEYID', secretAccessKey: `canary/${randomBytes(24).toString('base64')}` };
  secrets.set('secret key of the backend', canary.secretAccessKey);
  const [row] = await appliance.database.query<{ tenant_id: string; id: string }>(
    "SELECT tenant_id, id FROM trivet.backend WHERE kind = 'fake'",
  );
  const place = { tenantId: row!.tenant_id, table: 'backend', rowId: row!.id, column: 'credentials' };
  await appliance.database.query(
    "UPDATE trivet.secret SET sealed = $1 WHERE owner_table = 'backend' AND owner_id = $2",
    [encodeSealed(appliance.secrets.seal(JSON.stringify(canary), place)), row!.id],
  );
  for (const [name, secret] of secrets) expect(secret.length, name).toBeGreaterThan(7);

  redisMonitor = await new Redis(env.TRIVET_REDIS_URL!).monitor();
  redisMonitor.on('monitor', (_time: string, args: string[]) => redisTraffic.push(args.join(' ')));
  await Promise.all([appliance.gateway(), appliance.worker()]);
  await mainJob();
});
afterAll(async () => {
  redisMonitor?.disconnect();
  await appliance?.close();
});

async function mainJob(): Promise<void> {
  const client = appliance.client();
  const fake = appliance.fake!;
  const create = (name: string, parameters = {}) => client.call('v1alpha1', 'DriverCreateBucket', { name, parameters });
  const grant = async (name: string, bucket_id: string) => {
    const request = { name, bucket_id, authentication_type: 'Key' };
    const sampling = setInterval(sampleCommandLines, 50);
    const outcome = await client.call('v1alpha1', 'DriverGrantBucketAccess', request);
    sampleCommandLines();
    clearInterval(sampling);
    for (const { uid, keys } of fake.principals())
      for (const { secretAccessKey } of keys) secrets.set(`secret key of ${uid}`, secretAccessKey);
    return outcome;
  };
  await create('plain');
  fake.addFault({ method: 'putPrincipal', mode: 'delay', delayMs: 500 });
  const granted = await grant('ba-plain', 'plain');
  expect(granted.code).toBe('OK');
  expect(secrets.get(`secret key of ${granted.reply.account_id}`)).toBe(
    granted.reply.credentials.s3.secrets.accessSecretKey,
  );
  await grant('ba-plain', 'plain');
  await appliance.database.query("UPDATE trivet.access SET rotate_at = now() WHERE name = 'ba-plain'");
  await until('its key is changed', async () => {
    const { reply } = await grant('ba-plain', 'plain');
    return reply.credentials.s3.secrets.accessSecretKey !== granted.reply.credentials.s3.secrets.accessSecretKey;
  });
  await until('the former has ended', async () => {
    const idle = "name = 'ba-plain' AND key_operation IS NULL AND former_until IS NULL";
    return (await appliance.database.query(`SELECT FROM trivet.access WHERE ${idle}`)).length === 1;
  });
  const { reply } = await grant('ba-plain', 'plain');
  secrets.set('secret key before its change', granted.reply.credentials.s3.secrets.accessSecretKey);
  secrets.set('secret key after its change', reply.credentials.s3.secrets.accessSecretKey);
  // Every way to fail: refused, unanswered, for good and undone, parked, a defect.
  await create('plain', { quotaMaxSize: '1Gi' });
  await create('plain', { nonsense: 'x' });
  for (const [n, error] of (['permission_denied', 'internal', 'unavailable', 'invalid_argument'] as const).entries()) {
    fake.addFault({ method: 'putPrincipal', mode: 'fail-after', error });
    await grant(`ba-failing-${n}`, 'plain');
  }
  fake.addFault({ method: 'putPrincipal', mode: 'hang-after' });
  await grant('ba-unanswered', 'plain');
  // Nobody else may meet the next fault.
  await appliance.settled();
  fake.addFault({ method: 'putGrants', mode: 'fail-before', error: 'failed_precondition' });
  const parked = await grant('ba-parked', 'plain');
  expect(parked.code).toBe('FAILED_PRECONDITION');
  // Credentials that do not open: sealed for another place.
  await create('broken');
  const broken = await grant('ba-broken', 'broken');
  await appliance.database.query(
    `UPDATE trivet.secret s SET sealed = other.sealed FROM trivet.access a, trivet.secret other
      WHERE a.name = 'ba-broken' AND s.owner_id = a.id AND other.owner_table = 'backend'`,
  );
  expect((await grant('ba-broken', 'broken')).code).toBe('INTERNAL');
  const revoke = { bucket_id: 'broken', account_id: broken.reply.account_id };
  await client.call('v1alpha1', 'DriverRevokeBucketAccess', revoke, 2_000);
  await blockJob();
  const token = await ensureLauncherToken(appliance.database.ownerUrl, undefined);
  await adminJob(appliance.cspUrl, token!, ADMIN_PASSWORD, secrets);
  const { account_id } = granted.reply;
  await client.call('v1alpha1', 'DriverRevokeBucketAccess', { bucket_id: 'plain', account_id });
  // The database goes away under both processes: drivers' errors carry a lot.
  await appliance.database.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
  );
  await grant('ba-last', 'plain');
  await Promise.all(appliance.processes.map(process => process.stop()));
}

/** Logins, good and bad, and a host's CHAP account: given, published, changed, refused, withdrawn. */
async function blockJob(): Promise<void> {
  const newSecret = (name: string) => {
    const secret = randomBytes(8).toString('hex');
    secrets.set(name, secret);
    return secret;
  };
  const ask = async (method: string, path: string, body?: object, token?: string) => {
    const headers: Record<string, string> = { 'content-type': 'application/json' };
    if (token) headers['x-auth-token'] = token;
    const reply = await fetch(`${appliance.cspUrl}/containers/v1/${path}`, {
      method,
      headers,
      body: body && JSON.stringify(body),
    });
    const text = await reply.text();
    return { status: reply.status, body: text ? JSON.parse(text) : undefined };
  };
  const login = (password: string) => ask('POST', 'tokens', { username: 'csp', password, array_ip: '' });
  secrets.set('password of csp', CSP_PASSWORD);
  expect((await login(newSecret('wrong password'))).status).toBe(401);
  const token: string = (await login(CSP_PASSWORD)).body.session_token;
  secrets.set('session token', token);
  const host = (chap_password: string, uuid = 'canary-host') => ({
    uuid,
    name: uuid,
    iqns: [`iqn.2026-11.example:${uuid}`],
    networks: ['192.0.2.1/24'],
    chap_user: 'canary',
    chap_password,
  });
  expect((await ask('POST', 'hosts', host(newSecret('CHAP password')), token)).status).toBe(200);
  expect((await ask('POST', 'hosts', host(newSecret('refused CHAP password'), 'other'), token)).status).toBe(409);
  expect((await ask('POST', 'hosts', host('short'), token)).status).toBe(400);
  const volume = { name: 'canary', size: 64 * 1024 ** 2, config: {} };
  const { id } = (await ask('POST', 'volumes', volume, token)).body;
  const sampling = setInterval(sampleCommandLines, 20);
  const publish = { host_uuid: 'canary-host', access_protocol: 'iscsi' };
  const published = await ask('PUT', `volumes/${id}/actions/publish`, publish, token);
  expect(published.body).toMatchObject({ chap_user: 'canary', chap_password: secrets.get('CHAP password') });
  expect((await ask('POST', 'hosts', host(newSecret('changed CHAP password')), token)).status).toBe(200);
  sampleCommandLines();
  clearInterval(sampling);
  for (const entry of readdirSync(appliance.tgtPath, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) besideTgtd.set(entry.name, readFileSync(join(entry.parentPath, entry.name), 'latin1'));
  expect((await ask('PUT', `volumes/${id}/actions/unpublish`, { host_uuid: 'canary-host' }, token)).status).toBe(204);
}

/** COPY of each table, as a dump would show it. */
async function dump(): Promise<Map<string, string>> {
  const client = new pg.Client(appliance.database.superuserUrl);
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      "SELECT c.oid::regclass::text AS name FROM pg_class c WHERE relnamespace = 'trivet'::regnamespace AND relkind IN ('r', 'm')",
    );
    const texts = new Map<string, string>();
    for (const { name } of rows) {
      const { rows: lines } = await client.query<{ line: string }>(`SELECT t::text AS line FROM ${name} t`);
      texts.set(name, lines.map(({ line }) => line).join('\n'));
    }
    return texts;
  } finally {
    await client.end();
  }
}

describe('the search', () => {
  it('has secrets to look for and would find each of them, in each form', () => {
    expect(secrets.size).toBeGreaterThanOrEqual(5 + 5);
    for (const [name, secret] of secrets)
      for (const form of forms(secret)) expect(found(`before ${form} after`)).toContain(name);
  });

  it('finds none in the logs of gateway and worker at their most talkative', () => {
    for (const { role, output } of appliance.processes) {
      const log = output.join('');
      expect(log.split('\n').length, role).toBeGreaterThan(8);
      expect(found(log), role).toEqual([]);
    }
    expect(appliance.processes.map(process => process.log()).join('')).toContain('"level":"error"');
  });

  it('finds none in Redis: neither in what is there nor in what has ever been sent', async () => {
    const redis = new Redis(appliance.env.TRIVET_REDIS_URL!);
    try {
      const keys = await redis.keys(`${appliance.redisPrefix}:*`);
      expect(keys.length).toBeGreaterThan(0);
      for (const key of keys) expect(found(`${key} ${(await redis.dump(key)) ?? ''}`), key).toEqual([]);
    } finally {
      redis.disconnect();
    }
    const ours = redisTraffic.filter(line => line.includes(appliance.redisPrefix));
    expect(ours.some(line => line.includes('operationId'))).toBe(true);
    for (const line of ours) expect(found(line)).toEqual([]);
  });

  it('finds none in any table, and the sealed ones really are', async () => {
    const texts = await dump();
    expect(texts.get('trivet.operation')).toContain('access.grant');
    expect(texts.get('trivet.secret')).toContain('credentials');
    for (const [table, text] of texts) {
      expect(found(text), table).toEqual([]);
      // The text of a bytea is hexadecimal.
      const bytes = text.replace(/\\x([0-9a-f]+)/g, (_, hex: string) => Buffer.from(hex, 'hex').toString('latin1'));
      expect(found(bytes), table).toEqual([]);
    }
  });

  it('finds none in the arguments or the environment names of any process', () => {
    expect([...commandLines].some(line => line.includes('test-worker.js'))).toBe(true);
    for (const line of commandLines) expect(found(line), line.replaceAll('\0', ' ').slice(0, 80)).toEqual([]);
  });

  it('finds none in what is kept beside tgtd, its log included', () => {
    expect(besideTgtd.size).toBeGreaterThan(2);
    for (const [name, text] of besideTgtd) expect(found(text), name).toEqual([]);
  });

  it('finds none in what callers were told of failures', async () => {
    const rows = await appliance.database.query<{ error: unknown }>(
      'SELECT error FROM trivet.operation WHERE error IS NOT NULL',
    );
    expect(rows.length).toBeGreaterThanOrEqual(3);
    expect(found(JSON.stringify(rows))).toEqual([]);
  });
});
