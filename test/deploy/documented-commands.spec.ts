import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT, programFile } from '#platform/package-root';
import { ensureLauncherToken } from '#tenancy/tokens/launcher-token';
import { TestAppliance } from '#test/support/appliance';
import { CSP_PASSWORD } from '#test/support/block-folders';
import { compileCache } from '#test/support/compile-cache';
import { until } from '#test/support/parts';

const ADMIN_PASSWORD = 'an admin of tests';
const page = (name: string): string => readFileSync(join(PACKAGE_ROOT, 'docs', `${name}.md`), 'utf8');
const pages = ['buckets', 'volumes', 'administer'].map(page).join('\n');

/** Calls `cosi METHOD 'JSON'`, which may go over several lines. */
const calls = new Map(
  [...page('buckets').matchAll(/^ {4}cosi (\w+)(?: '([^']*)')?$/gm)].map(([, method, request]) => [
    method as string,
    request,
  ]),
);

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

function run(args: string[], env: Record<string, string> = {}): Promise<Ended> {
  return new Promise(resolve => {
    execFile(
      process.execPath,
      args,
      { cwd: PACKAGE_ROOT, env: { PATH: '/usr/bin:/bin', ...compileCache(), ...env } },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

it.each(['changed-blocks.mjs', 'cosi-call.mjs'])('the example %s says how it is called', async name => {
  const { code, stderr } = await run([`docs/examples/${name}`]);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/^usage: .+\n$/) });
  expect(stderr).toContain(`usage: ${name} `);
});

describe('commands of docs/', () => {
  let appliance: TestAppliance;
  const folder = mkdtempSync(join(tmpdir(), 'trivet-documents-'));
  beforeAll(async () => {
    const passwordFile = join(folder, 'admin-password');
    writeFileSync(passwordFile, ADMIN_PASSWORD, { mode: 0o600 });
    const env = { TRIVET_ADMIN_PASSWORD_FILE: passwordFile };
    appliance = await TestAppliance.start({ backend: 'fake', block: 'fake', env });
  });
  afterAll(async () => {
    await appliance?.close();
    rmSync(folder, { recursive: true });
  });

  /** Lines of a block that is indented as code, from the one that begins so to the end of the command. */
  const command = (begin: string): string => {
    const lines = pages.split('\n');
    const at = lines.findIndex(line => line.startsWith(`    ${begin}`));
    expect(at, begin).toBeGreaterThan(0);
    const quotes = (text: string) => text.split("'").length - 1;
    let text = lines[at]!.slice(4);
    for (let next = at + 1; quotes(text) % 2 === 1; next++) text += `\n${lines[next]}`;
    return text;
  };
  const url = (text: string) => text.replace('http://127.0.0.1:8740', appliance.cspUrl);
  /** Each line of what they print is JSON. */
  async function runScript(script: readonly string[]): Promise<Record<string, unknown>[]> {
    const { code, stdout, stderr } = await new Promise<Ended>(resolve =>
      execFile('sh', ['-ec', script.join('\n')], { cwd: folder }, (error, out, err) =>
        resolve({ code: error === null ? 0 : Number(error.code), stdout: out, stderr: err }),
      ),
    );
    expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' });
    return stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line));
  }

  const cosi = (method: string, request?: string): Promise<Ended> =>
    run(['docs/examples/cosi-call.mjs', appliance.socketPath, method, ...(request === undefined ? [] : [request])]);

  async function answer(method: string, edit = (request: string) => request): Promise<Record<string, unknown>> {
    expect([...calls.keys()]).toContain(method);
    const request = calls.get(method);
    const { code, stdout, stderr } = await cosi(method, request && edit(request));
    expect(stderr).toBe('');
    expect(code).toBe(0);
    return JSON.parse(stdout);
  }

  it('make a bucket, grant, repeat, revoke and delete over COSI', async () => {
    expect(await answer('DriverGetInfo')).toMatchObject({ name: 'cosi.trivet.dev' });
    expect(await answer('DriverCreateBucket')).toMatchObject({ bucket_id: 'photos' });
    const granted = await answer('DriverGrantBucketAccess');
    expect(await answer('DriverGrantBucketAccess')).toEqual(granted);
    const account = (request: string) =>
      request.replace('"account_id": "..."', `"account_id": "${granted.account_id}"`);
    await answer('DriverRevokeBucketAccess', account);
    await answer('DriverDeleteBucket');
    expect((await appliance.operations()).map(({ kind, state }) => `${kind} ${state}`)).toEqual([
      'bucket.create succeeded',
      'access.grant succeeded',
      'access.revoke succeeded',
      'bucket.delete succeeded',
    ]);
  });

  const hasCurl = spawnSync('curl', ['--version']).status === 0;
  it.runIf(hasCurl)('log in over CSP, create, find and publish a volume', async () => {
    await until('the pool was looked at', async () => {
      return (await appliance.database.query('SELECT FROM trivet.pool')).length === 1;
    });
    const script = [
      command('csp() {'),
      url(command('CSP=')),
      command('TOKEN=$(csp').replace('"password": "..."', `"password": "${CSP_PASSWORD}"`),
      command('csp $CSP/volumes -d'),
      'echo',
      command('csp "$CSP/volumes?name='),
      'echo',
      command('csp $CSP/hosts -d'),
      'echo',
      'ID=$(csp "$CSP/volumes?name=data" | sed \'s/.*"id":"\\([^"]*\\)".*/\\1/\')',
      command('csp -X PUT $CSP/volumes/ID/actions/publish').replace('/ID/', '/$ID/'),
    ];
    const [created, found, host, published] = await runScript(script);
    expect(created).toMatchObject({ name: 'data', size: 1_073_741_824, published: false });
    expect(found).toMatchObject([{ id: created!.id }]);
    expect(host).toMatchObject({ name: 'node-a', chap_user: 'node-a' });
    expect(published).toMatchObject({ lun_id: 1, chap_user: 'node-a', access_protocol: 'iscsi' });
  });

  it.runIf(hasCurl)('administer: log in, make a tenant, its user and an API token', async () => {
    const token = await ensureLauncherToken(appliance.database.ownerUrl, undefined);
    const credentials = { admin: { username: 'admin@appliance', password: ADMIN_PASSWORD, token } };
    mkdirSync(join(folder, '.trivet'));
    writeFileSync(join(folder, '.trivet', 'credentials.json'), JSON.stringify(credentials, null, 2));
    const [me, tenants, tenant, user, made, login, again] = await runScript([
      url(command('ADMIN=')),
      command('TOKEN=$(sed -n'),
      command('admin() {'),
      ...['session', 'tenants', 'tenants -d', 'tenants/acme/users -d', 'tenants/acme/tokens -d'].flatMap(rest => [
        command(`admin $ADMIN/${rest}`),
        'echo',
      ]),
      command('curl -s -c cookies').replace('"password": "..."', `"password": "${ADMIN_PASSWORD}"`),
      'echo',
      command('curl -s -b cookies'),
    ]);
    expect(me).toMatchObject({ username: 'admin@appliance', token: 'launcher', appliance: true });
    expect(tenants).toMatchObject({ items: [{ name: 'default' }] });
    expect(tenant).toMatchObject({ name: 'acme', displayName: 'Acme Ltd' });
    expect(user).toMatchObject({ username: 'ann@acme', role: 'admin' });
    expect(made).toMatchObject({ name: 'ci', user: 'ann@acme', role: 'operator', token: expect.any(String) });
    expect(login).toMatchObject({ username: 'admin@appliance', token: null, csrf: expect.any(String) });
    expect(again).toEqual(login);
  });

  it('say what is wrong with a call', async () => {
    const wrong = await cosi('DriverCreateBucket', '{"name": "photos2", "parameters": {"size": "1"}}');
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain('INVALID_ARGUMENT: parameters[size]: unknown parameter');
    const unknown = await cosi('DriverMakeTea');
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toContain('methods: DriverGetInfo, DriverCreateBucket');
  });

  it('list operations also where addresses are given as files, as in containers', async () => {
    const { TRIVET_DATABASE_URL, TRIVET_DATABASE_ENGINE_URL, ...env } = appliance.env;
    for (const [name, url] of Object.entries({ TRIVET_DATABASE_URL, TRIVET_DATABASE_ENGINE_URL })) {
      env[`${name}_FILE`] = join(appliance.folder, name);
      writeFileSync(env[`${name}_FILE`]!, url!, { mode: 0o600 });
    }
    const listed = await run([programFile('trivet'), 'operation', 'list', '--offline', '--json'], env);
    expect(listed.stderr).toBe('');
    expect(JSON.parse(listed.stdout)).toEqual({ items: expect.any(Array) });
    expect(listed.code).toBe(0);
  });
});
