import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { AdminHouse, type Person } from '#test/admin/admin-house';
import { freePort } from '#test/support/free-port';
import { until } from '#test/support/parts';

const MAIN = join(PACKAGE_ROOT, 'dist', 'apps', 'cli', 'src', 'main.js');
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}
interface RunOptions {
  who?: Person;
  input?: string;
  env?: Record<string, string>;
}

/** The commands of an operator, as processes that ask a running gateway. */
let house: AdminHouse;
let home: string;
/** Arguments and environments that they were seen with. */
const seen = new Set<string>();

beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
  home = join(house.appliance.folder, 'no-home');
  mkdirSync(home);
  await Promise.all([house.appliance.gateway(), house.appliance.worker()]);
  await until('the pools were looked at', async () => (await house.query('SELECT FROM trivet.pool')).length >= 3);
});
afterAll(() => house?.close());

function tokenFile({ username, token }: Person): string {
  const file = join(home, username);
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  return file;
}

const environment = (who: Person): Record<string, string> => ({
  PATH: '/usr/bin:/bin',
  TRIVET_HOME: home,
  TRIVET_ADMIN_URL: house.appliance.cspUrl,
  TRIVET_ADMIN_TOKEN_FILE: tokenFile(who),
});

function run(args: readonly string[], { who = house.root.admin, input = '', env = {} }: RunOptions = {}) {
  return new Promise<Ended>(resolve => {
    const child = execFile(
      process.execPath,
      [MAIN, ...args],
      { env: { ...environment(who), ...env } },
      (error, stdout, stderr) => {
        clearInterval(sampling);
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
      },
    );
    const sampling = setInterval(() => {
      try {
        for (const file of ['cmdline', 'environ']) seen.add(readFileSync(`/proc/${child.pid}/${file}`, 'utf8'));
      } catch {
        // It has ended meanwhile.
      }
    }, 20);
    child.stdin!.end(input);
  });
}

async function trivet(args: readonly string[], options?: RunOptions): Promise<string> {
  const { code, stdout, stderr } = await run(args, options);
  expect({ code, stderr }, `trivet ${args.join(' ')}`).toEqual({ code: 0, stderr: '' });
  return stdout;
}
const json = async (args: readonly string[], options?: RunOptions) =>
  JSON.parse(await trivet([...args, '--json'], options));
/** Cells of a table's rows. */
const rows = (text: string): string[][] =>
  text
    .trim()
    .split('\n')
    .slice(1)
    .map(line => line.split(/ {2,}/));

describe('trivet tenant', () => {
  it('makes, limits, suspends and deletes one', async () => {
    expect(await json(['tenant', 'create', 'shop', '--display-name', 'The Shop'])).toMatchObject({
      name: 'shop',
      displayName: 'The Shop',
      state: 'active',
    });
    expect(rows(await trivet(['tenant', 'list'])).map(([name]) => name)).toEqual(
      expect.arrayContaining(['acme', 'beta', 'shop']),
    );
    const quotas = await json(['tenant', 'quota', 'shop', 'volumes=10', 'volume_bytes=2T', 'streams=none']);
    expect(quotas).toMatchObject({
      volumes: { limit: '10', used: '0' },
      volume_bytes: { limit: String(2n << 40n) },
      streams: { limit: null },
    });
    expect(rows(await trivet(['tenant', 'quota', 'shop']))).toContainEqual([
      'volumes',
      '0',
      '10',
      '[····················] 0 %',
    ]);
    for (const wrong of ['volumes=ten', 'volumes=1G', 'cheese=1', 'volumes'])
      expect((await run(['tenant', 'quota', 'shop', wrong])).code, wrong).toBe(1);

    expect(await trivet(['tenant', 'suspend', 'shop'])).toBe('shop is suspended\n');
    expect(await json(['tenant', 'list', '--state', 'suspended'])).toMatchObject({
      items: [{ name: 'shop' }],
      next: null,
    });
    expect(await json(['tenant', 'resume', 'shop'])).toMatchObject({ state: 'active' });

    const unconfirmed = await run(['tenant', 'delete', 'shop']);
    expect(unconfirmed).toMatchObject({ code: 1, stderr: 'trivet: repeat the name: --confirm shop\n' });
    expect((await run(['tenant', 'delete', 'shop', '--confirm', 'shp'])).stderr).toContain('nothing was deleted');
    expect(await trivet(['tenant', 'delete', 'shop', '--confirm', 'shop'])).toBe('shop is deleted\n');
    expect(await json(['tenant', 'list'])).not.toMatchObject({ items: expect.arrayContaining([{ name: 'shop' }]) });
  });
});

describe('trivet backend and endpoint', () => {
  it('show, test, cordon and take back what there is', async () => {
    const [fake] = rows(await trivet(['backend', 'list', '--tenant', 'acme'])).filter(([name]) => name === 'fake');
    expect(fake!.slice(0, 4)).toEqual(['fake', 'fake', 'active', expect.stringMatching(/^(up|unknown)$/)]);
    expect(await json(['backend', 'test', 'fake', '--tenant', 'acme'])).toMatchObject({ ok: true });
    expect(await trivet(['backend', 'cordon', 'fake', '--tenant', 'acme', '--reason', 'new disks'])).toMatch(
      /^fake is cordoned/,
    );
    expect(await json(['backend', 'drain', 'fake', '--tenant', 'acme'])).toMatchObject({ state: 'draining' });
    expect(await json(['backend', 'uncordon', 'fake', '--tenant', 'acme'])).toMatchObject({ state: 'active' });
    const [entry] = await house.query<{ reason: string }>(
      "SELECT reason FROM trivet.audit_entry WHERE action LIKE 'backend.%' AND reason IS NOT NULL ORDER BY seq DESC",
    );
    expect(entry?.reason).toBe('new disks');
  });

  it('register one with its keys from files, and forget it', async () => {
    const config = join(home, 'config.json');
    const credentials = { accessKeyId: 'AKIDOFTHECOMMANDLINE', secretAccessKey: 'secret-of-the-command-line' };
    writeFileSync(config, JSON.stringify({ endpoint: 'http://127.0.0.1:9', region: 'default' }));
    const args = ['backend', 'add', 'far', '--tenant', 'acme', '--kind', 'rgw'];
    const missing = await run(args);
    expect(missing).toMatchObject({ code: 65, stderr: expect.stringContaining('--config-file') });
    const broken = join(home, 'broken.json');
    writeFileSync(broken, '{"secretAccessKey": "not-to-be-shown');
    const refused = await run([...args, '--config-file', config, '--credentials-file', broken]);
    expect(refused.code).toBe(65);
    expect(refused.stderr).not.toContain('not-to-be-shown');

    const made = await json([...args, '--config-file', config, '--credentials-file', '-'], {
      input: JSON.stringify(credentials),
    });
    expect(made).toMatchObject({ name: 'far', kind: 'rgw', state: 'active' });
    expect(JSON.stringify(made)).not.toContain(credentials.secretAccessKey);
    const tested = await run(['backend', 'test', 'far', '--tenant', 'acme']);
    expect(tested).toMatchObject({ code: 1, stdout: expect.stringMatching(/^fail /m) });
    expect(await trivet(['backend', 'remove', 'far', '--tenant', 'acme'])).toBe('far is forgotten\n');
  });

  it('open a socket for a tenant, suspend it and remove it', async () => {
    const add = ['endpoint', 'add', 'k8s', '--tenant', 'acme', '--protocol', 'cosi'];
    expect(await run(add)).toMatchObject({ code: 65, stderr: expect.stringContaining('--backend') });
    const made = await json([...add, '--backend', 'fake', '--driver-name', 'acme.objects.example']);
    expect(made).toMatchObject({ name: 'k8s', protocol: 'cosi', backend: 'fake', driverName: 'acme.objects.example' });
    expect(rows(await trivet(['endpoint', 'list', '--tenant', 'acme'])).map(([name]) => name)).toContain('k8s');
    expect(await trivet(['endpoint', 'suspend', 'k8s', '--tenant', 'acme'])).toBe('k8s is suspended\n');
    expect(await json(['endpoint', 'resume', 'k8s', '--tenant', 'acme'])).toMatchObject({ state: 'active' });
    expect(await trivet(['endpoint', 'remove', 'k8s', '--tenant', 'acme'])).toBe('k8s is removed\n');
  });
});

describe('trivet token', () => {
  it('gives whoever has a password a first token, in a file for him alone; revoked it is refused', async () => {
    const file = join(home, 'first-token');
    const { operator } = house.acme;
    const args = ['token', 'create', 'laptop', '--login', operator.username, '--password-file', '-', '--output', file];
    expect(await run(args, { input: 'a wrong password' })).toMatchObject({ code: 77 });
    expect(existsSync(file)).toBe(false);
    const said = await trivet(args, { input: `${operator.password}\n` });
    const secret = readFileSync(file, 'utf8').trim();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(said).toBe(`token laptop of the-operator@acme, operator, is in ${file}\n`);
    expect((await run(args, { input: operator.password })).stderr).toContain('exists already');

    const own = { env: { TRIVET_ADMIN_TOKEN_FILE: file } };
    const { items } = await json(['token', 'list', '--user', 'the-operator'], own);
    const made = items.find(({ name }: { name: string }) => name === 'laptop');
    expect(made).toMatchObject({ user: 'the-operator@acme', role: 'operator', expiresAt: null });
    expect(JSON.stringify(items)).not.toContain(secret);
    expect(await trivet(['token', 'revoke', made.id], own)).toBe(`${made.id} is revoked\n`);
    await until('it is refused', async () => (await run(['token', 'list'], own)).code === 77);
  });

  it('is shown once, with its role and end', async () => {
    const made = await json([
      'token',
      'create',
      'ci',
      '--tenant',
      'acme',
      '--user',
      'the-viewer',
      '--expires-in-days',
      '7',
    ]);
    expect(made).toMatchObject({ name: 'ci', user: 'the-viewer@acme', role: 'viewer', token: expect.any(String) });
    expect(Date.parse(made.expiresAt) - Date.now()).toBeGreaterThan(6 * 86_400_000);
    expect(rows(await trivet(['token', 'list', '--tenant', 'acme'])).map(([name]) => name)).toContain('ci');
  });
});

describe('trivet operations', () => {
  const bucket = { name: 'stuck', protocols: [{ type: 'S3' }] };
  let parked: string;

  it('finds what is stuck, shows why, and follows it to its end after a retry', async () => {
    const { fake } = house.appliance;
    const client = house.appliance.client();
    fake!.addFault({ method: 'configureBucket', mode: 'fail-after', error: 'permission_denied', count: 1_000 });
    expect((await client.call('r1', 'DriverCreateBucket', bucket)).code).toBe('PERMISSION_DENIED');
    fake!.seedObjects('stuck', 1);
    await client.call('r1', 'DriverDeleteBucket', { bucket_id: 'stuck' });
    const list = ['operations', 'list', '--state', 'needs_attention', '--kind', 'bucket'];
    const { items } = await json(list);
    expect(items).toMatchObject([{ kind: 'bucket.delete', resource: { name: 'stuck' }, tenant: 'default' }]);
    parked = items[0].id;
    expect(rows(await trivet(list))[0]!.slice(0, 5)).toEqual([
      parked,
      'default',
      'bucket.delete',
      'stuck',
      'needs_attention',
    ]);

    const shown = await trivet(['operations', 'show', parked]);
    expect(shown).toMatch(/^state +needs_attention$/m);
    expect(shown).toContain(`trivet operations retry ${parked}`);
    expect(shown).toMatch(/^events:$/m);
    expect(await json(['operations', 'show', parked])).toMatchObject({
      id: parked,
      actions: expect.arrayContaining(['retry']),
    });

    const stopped = await run(['operations', 'watch', parked]);
    expect(stopped).toMatchObject({ code: 1, stdout: expect.stringContaining('needs_attention') });

    fake!.clearFaults();
    fake!.seedObjects('stuck', 0);
    expect(await trivet(['operations', 'retry', parked, '--reason', 'emptied'])).toBe(
      `${parked} runs again within seconds\n`,
    );
    expect(await trivet(['operations', 'watch', parked])).toMatch(/bucket\.delete stuck .* succeeded/);
    expect(await json(['operations', 'watch', parked])).toMatchObject({ id: parked, state: 'succeeded' });
  });

  it('says what a state forbids, and that singular and plural are one command', async () => {
    for (const command of ['operations', 'operation']) {
      const { code, stderr } = await run([command, 'retry', parked]);
      expect(code).toBe(1);
      expect(stderr).toMatch(/^ {2}means {3}.*\(failed_precondition\)$/m);
      expect(stderr).toMatch(/^ {2}do {6}/m);
      expect(stderr).toMatch(new RegExp(`^ {2}quote {3}urn:uuid:${UUID.source}$`, 'm'));
    }
    expect((await run(['operations', 'cancel', parked])).stderr).toContain("required option '--reason <text>'");
  });

  it('shows live what happens, one line an event', async () => {
    const args = ['operations', 'watch', '--json'];
    const child = spawn(process.execPath, [MAIN, ...args], { env: environment(house.root.viewer), stdio: 'pipe' });
    let text = '';
    child.stdout.on('data', chunk => {
      text += String(chunk);
    });
    try {
      const client = house.appliance.client();
      let n = 0;
      // The stream begins with now, and says nothing until something happens.
      await until('an operation was seen to its end', async () => {
        await client.call('r1', 'DriverCreateBucket', { name: `live-${n++}`, protocols: [{ type: 'S3' }] });
        return text.includes('"succeeded"');
      });
      child.kill('SIGTERM');
      await once(child, 'exit');
      expect(child.exitCode).toBe(0);
    } finally {
      child.kill('SIGKILL');
    }
    const events = text
      .trim()
      .split('\n')
      .map(line => JSON.parse(line));
    expect(events.find(({ operation }) => operation?.state === 'succeeded')).toMatchObject({
      type: 'operation',
      tenant: 'default',
      operation: { kind: 'bucket.create', resource: { name: expect.stringMatching(/^live-/) } },
    });
  });
});

describe('trivet volume list', () => {
  it('shows the volumes of a tenant', async () => {
    const { acme } = house;
    const made = await house.call(acme.operator, 'POST', '/tenants/acme/volumes', {
      body: { name: 'data', size: '1048576' },
      headers: { prefer: 'wait=30' },
    });
    expect(made.status).toBe(201);
    expect(await json(['volume', 'list', '--tenant', 'acme'])).toMatchObject({
      items: [{ id: made.body.id, name: 'data', size: '1048576', state: 'ready' }],
    });
    const [host, lost] = [randomUUID(), randomUUID()];
    await house.query(
      `INSERT INTO trivet.host (tenant_id, id, uuid, name, iqns, wwpns, nqns, networks)
       VALUES ($1, $2, 'host-uuid', 'node-a', '{iqn.1994-05.com.redhat:a}', '{}', '{}', '{}')`,
      [acme.id, host],
    );
    await house.query(
      `INSERT INTO trivet.publication (tenant_id, id, volume_id, host_id, access_protocol, state)
       VALUES ($1, $2, $3, $4, 'iscsi', 'applied')`,
      [acme.id, randomUUID(), made.body.id, host],
    );
    await house.query(
      `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes,
                                  thick, destroy_on_delete, description, config, condition)
       SELECT tenant_id, $2, backend_id, 'lost', 'ready', desired, fingerprint, pool, 'db', 2048, false, true, '', config, $3
         FROM trivet.volume WHERE id = $1`,
      [made.body.id, lost, JSON.stringify({ type: 'lost', message: 'its image is missing' })],
    );
    const shown = rows(await trivet(['volume', 'list'], { who: acme.viewer }));
    expect(shown).toEqual([
      ['data', '1 MiB', 'default', 'ready', 'node-a', '0', made.body.id],
      ['lost', '2 KiB', 'default/db', 'needs attention', '0', lost, 'its image is missing'],
    ]);
    expect(await trivet(['volume', 'list', '--limit', '1'], { who: acme.viewer })).toMatch(
      /^NAME.*\ndata .*\nthe first 1; --limit shows more\n$/,
    );
    const wrong = await json(['volume', 'list', '--condition'], { who: acme.viewer });
    expect(wrong.items.map(({ name }: { name: string }) => name)).toEqual(['lost']);
    expect(await trivet(['volume', 'list', '--search', 'nothing-like-it'], { who: acme.viewer })).toMatch(
      /^no volumes yet/,
    );
  });
});

describe('trivet queue and audit', () => {
  it('pause and resume a class', async () => {
    expect((await run(['queue', 'pause', 'copy'])).stderr).toContain('--reason');
    expect(await trivet(['queue', 'pause', 'copy', '--reason', 'the pool is moved'])).toMatch(/^copy is paused: /);
    expect(rows(await trivet(['queue', 'list']))).toContainEqual(
      expect.arrayContaining(['copy', 'paused', 'the-admin@appliance (token house)', 'the pool is moved']),
    );
    expect(await json(['queue', 'resume', 'copy'])).toMatchObject({ class: 'copy', paused: false });
  });

  it('say who did what, and export all of it', async () => {
    const [newest] = rows(await trivet(['audit', '--action', 'queue.', '--limit', '1']));
    expect(newest).toEqual(expect.arrayContaining(['the-admin@appliance (token house)']));
    const exported = (await trivet(['audit', '--export'])).trim().split('\n');
    const [{ count }] = (await house.query<{ count: string }>('SELECT count(*) FROM trivet.audit_entry')) as [
      { count: string },
    ];
    expect(exported.length).toBe(Number(count));
    for (const line of exported) expect(JSON.parse(line)).toMatchObject({ actor: { name: expect.any(String) } });
  });
});

describe('trivet doctor', () => {
  const settings = ['TRIVET_DATABASE_URL', 'TRIVET_DATABASE_ENGINE_URL', 'TRIVET_KEK_FILE'];
  const examine = async () => {
    const { env } = house.appliance;
    const given = Object.fromEntries(settings.map(name => [name, env[name]!]));
    const { code, stdout } = await run(['doctor', '--json'], { env: given });
    const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: Record<string, string>[] };
    return { code, ok, of: (name: string) => findings.filter(finding => finding.name === name) };
  };

  it('asks through the API for each backend, socket, worker and queue', async () => {
    const well = await examine();
    expect(well.of('backend acme/fake')).toMatchObject([{ level: 'ok' }]);
    expect(well.of('worker')).toMatchObject([{ level: 'ok', detail: '1 up' }]);
    expect(well.of('schema')).toMatchObject([{ level: 'ok' }]);

    house.appliance.fake!.addFault({ method: 'health', mode: 'fail-before', error: 'unavailable', count: 1_000 });
    house.appliance.fake!.addFault({ method: 'diagnose', mode: 'fail-before', error: 'unavailable', count: 1_000 });
    await house.query(
      `INSERT INTO trivet.worker (id, host, pid, version, concurrency, seen_at)
       VALUES (gen_random_uuid(), 'another-host', 4711, '0.1.0', 1, now() - interval '1 hour')`,
    );
    await trivet(['queue', 'pause', 'index', '--reason', 'until tomorrow']);
    await trivet(['endpoint', 'add', 'closed', '--tenant', 'acme', '--protocol', 'csi', '--group', 'no-such-group']);
    try {
      const ill = await examine();
      expect(ill).toMatchObject({ code: 1, ok: false });
      expect(ill.of('backend acme/fake')).toContainEqual(
        expect.objectContaining({ level: 'fail', remedy: expect.any(String) }),
      );
      expect(ill.of('worker')).toContainEqual(
        expect.objectContaining({ level: 'warn', detail: expect.stringContaining('another-host, pid 4711') }),
      );
      expect(ill.of('queue index')).toMatchObject([{ level: 'warn', remedy: 'trivet queue resume index' }]);
      expect(ill.of('socket acme/closed')).toMatchObject([{ level: 'fail', remedy: expect.any(String) }]);
    } finally {
      house.appliance.fake!.clearFaults();
      await trivet(['queue', 'resume', 'index']);
      await trivet(['endpoint', 'remove', 'closed', '--tenant', 'acme']);
      await house.query("DELETE FROM trivet.worker WHERE host = 'another-host'");
    }
  });
});

describe('errors and exit codes', () => {
  it('say what happened, what it means, what to do, and what to quote', async () => {
    const { code, stderr, stdout } = await run(['tenant', 'suspend', 'nobody']);
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(stderr.split('\n')).toEqual([
      'trivet: there is no tenant nobody',
      '  means   there is no such object, or not for you (not_found)',
      expect.stringMatching(/^ {2}do {6}./),
      expect.stringMatching(/^ {2}quote {3}urn:uuid:/),
      '',
    ]);
  });

  it('tell a script what it can do about it', async () => {
    const { acme } = house;
    expect((await run(['tenant', 'create', 'x'], { who: acme.admin })).code).toBe(77);
    expect((await run(['tenant', 'create', 'Not A Name'])).code).toBe(65);
    expect((await run(['tenant', 'list', '--limit', 'many'])).code).toBe(1);
    const wrongToken = join(home, 'wrong-token');
    writeFileSync(wrongToken, 'trivet_nothing\n');
    expect((await run(['tenant', 'list', '--token-file', wrongToken])).code).toBe(77);
    const nobody = await run(['tenant', 'list', '--url', `http://127.0.0.1:${await freePort()}`]);
    expect(nobody).toMatchObject({ code: 69, stderr: expect.stringContaining('does not answer: ECONNREFUSED') });
    const noAddress = await run(['tenant', 'list'], { env: { TRIVET_ADMIN_URL: '' } });
    expect(noAddress).toMatchObject({ code: 78, stderr: expect.stringContaining('TRIVET_ADMIN_URL') });
    const noToken = await run(['tenant', 'list'], { env: { TRIVET_ADMIN_TOKEN_FILE: '' } });
    expect(noToken).toMatchObject({ code: 78, stderr: expect.stringContaining('--token-file') });
    const elsewhere = await run(['tenant', 'list', '--url', `${house.appliance.cspUrl}/elsewhere`]);
    expect(elsewhere).toMatchObject({ code: 69, stderr: expect.stringContaining('TRIVET_HTTP_LISTEN') });
  });

  it('no secret stood in an argument or in the environment of a command', () => {
    const all = [...seen].join('\n');
    expect(all).toContain('TRIVET_ADMIN_TOKEN_FILE');
    for (const { token, password } of [house.root.admin, house.acme.operator]) {
      expect(all).not.toContain(token);
      expect(all).not.toContain(password);
    }
    expect(all).not.toContain('secret-of-the-command-line');
  });
});
