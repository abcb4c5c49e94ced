import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '#platform/database/database';
import { AdminLogins } from '#tenancy/logins/admin-logins';
import { CommandHome } from '#test/support/command-home';

/** `migrate` and `trivet user`, as processes, on a home whose settings lead to a database of the test. */
let home: CommandHome;
let database: Database;

beforeAll(async () => {
  home = await CommandHome.create();
  database = await Database.connect({ appUrl: home.database.appUrl, applicationName: 'trivet:test', poolSize: 2 });
});
afterAll(async () => {
  await database?.close();
  await home?.close();
});

const trivet = async (args: string[], input?: string): Promise<string> => {
  const { code, stdout, stderr } = await home.trivet(args, input);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
};
const admin = (): { username: string; password: string; token: string } =>
  JSON.parse(readFileSync(home.home.credentialsFile, 'utf8')).admin;
/** As a process that was just started. */
const logins = (): AdminLogins => new AdminLogins(database);
const mayLogIn = (password: string) =>
  logins()
    .login({ username: 'admin@appliance', password, address: '127.0.0.1' })
    .then(
      () => true,
      () => false,
    );
const audited = () =>
  home.database.query<{ action: string; subject_name: string; actor_kind: string }>(
    "SELECT action, subject_name, actor_kind FROM trivet.audit_entry WHERE tenant_name = 'appliance' ORDER BY seq",
  );

describe('the first administrator', () => {
  it('is made once by migrate, with an API token, both in the credentials file', async () => {
    await trivet(['migrate']);
    const first = admin();
    expect(first).toEqual({
      username: 'admin@appliance',
      password: readFileSync(home.home.file('secrets', 'admin-password'), 'utf8').trim(),
      token: expect.stringMatching(/^trivet_/),
    });
    expect(statSync(home.home.credentialsFile).mode & 0o777).toBe(0o600);
    expect(await mayLogIn(first.password)).toBe(true);
    expect(await logins().authenticate(first.token)).toMatchObject({
      username: 'admin@appliance',
      appliance: true,
      role: 'admin',
      kind: 'token',
      tokenName: 'launcher',
    });
    await trivet(['migrate']);
    expect(admin()).toEqual(first);
    expect((await audited()).slice(0, 2)).toEqual([
      { action: 'user.create', subject_name: 'admin@appliance', actor_kind: 'command' },
      { action: 'token.create', subject_name: 'launcher', actor_kind: 'command' },
    ]);
  });

  it('keeps a password that somebody gave it; the file follows where this host knows it', async () => {
    const { token } = admin();
    const said = await trivet(['user', 'passwd', 'admin', '--tenant', 'appliance', '--offline']);
    const password = /shown once\): (\S+)\n/.exec(said)![1]!;
    expect(admin()).toEqual({ username: 'admin@appliance', password, token });
    expect(await trivet(['migrate'])).toBe('the schema is up to date\n');
    expect(admin()).toEqual({ username: 'admin@appliance', password, token });
    expect(await mayLogIn(password)).toBe(true);
    // Of a home that knows nothing, only the token is made anew: the password is its owner's.
    writeFileSync(home.home.credentialsFile, '{}\n');
    expect(await trivet(['migrate'])).toContain('trivet user passwd admin --tenant appliance');
    expect(admin()).toEqual({ username: 'admin@appliance', token: expect.stringMatching(/^trivet_/) });
    expect(await logins().authenticate(token)).toBeUndefined();
    expect(await logins().authenticate(admin().token)).toMatchObject({ role: 'admin' });
  });

  it('gets another token in place of one that was revoked or opens less', async () => {
    for (const spoil of [
      "DELETE FROM trivet.admin_token WHERE name = 'launcher'",
      "UPDATE trivet.admin_token SET role = 'viewer' WHERE name = 'launcher'",
      "UPDATE trivet.admin_token SET expires_at = now() WHERE name = 'launcher'",
    ]) {
      const { token } = admin();
      await home.database.query(spoil);
      await trivet(['migrate']);
      expect(admin().token).not.toBe(token);
      expect(await logins().authenticate(admin().token)).toMatchObject({ role: 'admin' });
    }
    expect(await home.database.query("SELECT FROM trivet.admin_token WHERE name = 'launcher'")).toHaveLength(1);
  });

  it('is not made again while there is another one, and is when there is none', async () => {
    await trivet(
      ['user', 'create', 'root', '--tenant', 'appliance', '--role', 'admin', '--password-stdin', '--offline'],
      'of the other one',
    );
    await home.database.query("DELETE FROM trivet.tenant_user WHERE name = 'admin'");
    await trivet(['migrate']);
    expect(await home.database.query("SELECT FROM trivet.tenant_user WHERE name = 'admin'")).toEqual([]);
    await home.database.query("DELETE FROM trivet.tenant_user WHERE name = 'root'");
    await trivet(['migrate']);
    expect(await mayLogIn(readFileSync(home.home.file('secrets', 'admin-password'), 'utf8').trim())).toBe(true);
    expect(await logins().authenticate(admin().token)).toMatchObject({ role: 'admin' });
  });

  it('and its token stand nowhere in the clear but in their files', async () => {
    const secrets = [admin().token, admin().password];
    const tables = await home.database.query<{ name: string }>(
      "SELECT oid::regclass::text AS name FROM pg_class WHERE relnamespace = 'trivet'::regnamespace AND relkind = 'r'",
    );
    let texts = [...home.commandLines].join('\n');
    for (const { name } of tables)
      texts += JSON.stringify(await home.database.query(`SELECT t::text AS line FROM ${name} t`));
    for (const secret of secrets) expect(texts.includes(secret)).toBe(false);
  });
});
