import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '#platform/database/database';
import { Sessions } from '#tenancy/logins/sessions';
import { CommandHome } from '#test/support/command-home';
import { request } from '#test/tenancy/login-house';

/** The operator's commands, as processes, on a home whose settings lead to a database of the test. */
let home: CommandHome;
let database: Database;
let sessions: Sessions;

beforeAll(async () => {
  home = await CommandHome.create();
  database = await Database.connect({ appUrl: home.database.appUrl, applicationName: 'trivet:test', poolSize: 2 });
  sessions = new Sessions({ database, isBlockKind: kind => kind === 'reflink', ttlMs: 60_000 });
});
afterAll(async () => {
  await database?.close();
  await home?.close();
});
const trivet = (args: string[], input?: string) => home.trivet(args, input);

/** With a backend, so that only the login can fail. */
async function mayLogIn(username: string, password: string): Promise<boolean> {
  await home.database.query(
    `INSERT INTO trivet.backend (tenant_id, id, name, kind, config)
     SELECT id, gen_random_uuid(), 'local', 'reflink', '{}' FROM trivet.tenant ON CONFLICT DO NOTHING`,
  );
  return sessions.login(request(username, password)).then(
    () => true,
    error => {
      expect(error).toMatchObject({ kind: 'unauthenticated' });
      return false;
    },
  );
}
const credentials = (): { csp?: { username: string; password: string } } =>
  JSON.parse(readFileSync(home.home.credentialsFile, 'utf8'));
const shown = (stdout: string): string => /shown once\): (\S+)\n/.exec(stdout)![1]!;

describe('migrate', () => {
  it('makes the user csp once, and writes its login into the credentials file, which is its owner’s alone', async () => {
    expect((await trivet(['migrate'])).stderr).toBe('');
    expect(statSync(home.home.credentialsFile).mode & 0o777).toBe(0o600);
    const { username, password } = credentials().csp!;
    expect(username).toBe('csp');
    expect(await mayLogIn('csp', password)).toBe(true);
    await trivet(['migrate']);
    expect(credentials().csp).toEqual({ username, password });
    expect(await mayLogIn('csp', password)).toBe(true);
  });

  it('never takes a changed password back, and says so where nobody knows it', async () => {
    const { stdout } = await trivet(['user', 'passwd', 'csp', '--offline']);
    const password = shown(stdout);
    expect(credentials().csp).toEqual({ username: 'csp', password });
    expect((await trivet(['migrate'])).stdout).toBe('the schema is up to date\n');
    expect(credentials().csp!.password).toBe(password);
    expect(await mayLogIn('csp', password)).toBe(true);
    writeFileSync(home.home.credentialsFile, '{}\n');
    const told = await trivet(['migrate']);
    expect(told.stdout).toContain('user csp exists with another password');
    expect(told.stdout).toContain('trivet user passwd csp');
    expect(credentials().csp).toBeUndefined();
  });
});

describe('trivet user --offline', () => {
  it('add makes a password and shows it once, or reads one; list shows who there is', async () => {
    const made = await trivet(['user', 'create', 'backup', '--role', 'viewer', '--offline']);
    expect(made.code).toBe(0);
    expect(await mayLogIn('backup', shown(made.stdout))).toBe(true);
    const read = await trivet(['user', 'create', 'given', '--password-stdin', '--offline'], 'a given password\n');
    expect(read.stdout).toBe('given may log in as operator\n');
    expect(await mayLogIn('given', 'a given password')).toBe(true);
    const rows = JSON.parse((await trivet(['user', 'list', '--json', '--offline'])).stdout) as { items: unknown[] };
    expect(rows.items).toMatchObject([
      { username: 'backup', role: 'viewer', state: 'active', tokens: 0 },
      { username: 'csp', role: 'operator', state: 'active' },
      { username: 'given', role: 'operator', state: 'active', tokens: 0 },
    ]);
    expect((await trivet(['user', 'list', '--offline'])).stdout).toMatch(
      /^LOGIN +ROLE +STATE +API TOKENS +CREATED\nbackup +viewer +active/,
    );
  });

  it('passwd and disable end the tokens; enable lets in again', async () => {
    const { token } = await sessions.login(request('given', 'a given password'));
    await trivet(['user', 'passwd', 'given', '--password-stdin', '--offline'], 'another password');
    const anew = new Sessions({ database, isBlockKind: () => true, ttlMs: 60_000 });
    expect(await anew.authenticate(token)).toBeUndefined();
    expect(await mayLogIn('given', 'a given password')).toBe(false);
    expect(await mayLogIn('given', 'another password')).toBe(true);
    await trivet(['user', 'disable', 'given', '--offline']);
    expect(await mayLogIn('given', 'another password')).toBe(false);
    await trivet(['user', 'enable', 'given', '--offline']);
    expect(await mayLogIn('given', 'another password')).toBe(true);
  });

  it('serves other tenants by name', async () => {
    await home.database.query("INSERT INTO trivet.tenant (id, name) VALUES (gen_random_uuid(), 'acme')");
    const { stdout } = await trivet(
      ['user', 'create', 'csp', '--tenant', 'acme', '--password-stdin', '--offline'],
      'password of acme',
    );
    expect(stdout).toContain('csp@acme may log in');
    expect(await mayLogIn('csp@acme', 'password of acme')).toBe(true);
    expect(await mayLogIn('csp', 'password of acme')).toBe(false);
  });

  it.each([
    [['user', 'create', 'Upper', '--password-stdin', '--offline'], 'name: expected', 65],
    [['user', 'create', 'a b', '--password-stdin', '--offline'], 'name: expected', 65],
    [['user', 'create', 'csp', '--password-stdin', '--offline'], 'has a user csp already', 1],
    [['user', 'create', 'x', '--tenant', 'nowhere', '--offline'], 'there is no tenant nowhere', 1],
    [['user', 'create', 'x', '--role', 'root', '--offline'], '--role root: expected one of viewer, operator, admin', 2],
    [['user', 'passwd', 'nobody', '--password-stdin', '--offline'], 'has no user nobody', 1],
    [['user', 'disable', 'nobody', '--offline'], 'has no user nobody', 1],
  ])('refuses %j in one line', async (args, message, refused) => {
    const { code, stderr, stdout } = await trivet(args, 'long enough');
    expect(code).toBe(refused);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('    at ');
    expect(stdout).toBe('');
  });

  it('refuses a password that is too short', async () => {
    const { code, stderr } = await trivet(['user', 'create', 'y', '--password-stdin', '--offline'], 'short\n');
    expect(code).toBe(65);
    expect(stderr).toContain('expected 8 to 256 characters, got 5');
  });
});

describe('passwords and tokens', () => {
  it('stand in no table, no log, no command line and no environment', async () => {
    const { token } = await sessions.login(request('given', 'another password'));
    const { password } = (await trivet(['user', 'passwd', 'csp', '--offline'])).stdout.match(
      /once\): (?<password>\S+)/,
    )!.groups!;
    const canaries = [
      token,
      password!,
      'another password',
      'password of acme',
      readFileSync(home.home.file('secrets', 'csp-password'), 'utf8').trim(),
    ];
    expect(credentials().csp!.password).toBe(password);
    const client = new pg.Client(home.database.superuserUrl);
    await client.connect();
    let texts = '';
    try {
      const { rows } = await client.query<{ name: string }>(
        "SELECT oid::regclass::text AS name FROM pg_class WHERE relnamespace = 'trivet'::regnamespace AND relkind = 'r'",
      );
      for (const { name } of rows)
        texts += (await client.query<{ line: string }>(`SELECT t::text AS line FROM ${name} t`)).rows
          .map(({ line }) => line)
          .join('\n');
    } finally {
      await client.end();
    }
    expect(texts).toContain('$argon2id$');
    for (const file of readdirSync(home.home.file('log'))) texts += readFileSync(home.home.file('log', file), 'utf8');
    expect([...home.commandLines].some(line => line.includes('passwd'))).toBe(true);
    texts += [...home.commandLines].join('\n');
    for (const canary of canaries) {
      expect(canary.length).toBeGreaterThan(7);
      for (const form of [canary, Buffer.from(canary).toString('hex'), Buffer.from(canary).toString('base64')])
        expect(texts.includes(form), `${canary.slice(0, 4)}...`).toBe(false);
    }
  });
});
