import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { CommandLine } from './command-line.js';

const OF_ACME = ['--tenant', 'acme'];

/** Tenants, their users, sockets and templates: each shown, and changed in place. */
export function describePeople(line: CommandLine): void {
  const { run, trivet, json } = line;

  it('trivet user change and delete give a role, and take the user away with its tokens', async () => {
    await json(['user', 'create', 'ann', '--role', 'operator', ...OF_ACME]);
    expect(await trivet(['user', 'show', 'ann', ...OF_ACME])).toMatch(/^role +operator$/m);
    expect(await trivet(['user', 'change', 'ann', '--role', 'viewer', ...OF_ACME])).toBe('ann@acme is viewer\n');
    const wrong: [string[], number, string][] = [
      [['change', 'ann'], 65, 'nothing to change: give --role, --subject or --unlink'],
      [['change', 'ann', '--subject', 'x', '--unlink'], 65, 'give one of the two'],
      [['change', 'ann', '--role', 'king'], 2, '--role king: expected one of viewer, operator, admin'],
      [['change', 'nobody', '--role', 'viewer'], 1, 'nobody'],
      [['delete', 'ann'], 65, 'user ann@acme is deleted, with 0 tokens: give --yes to do it'],
      [['delete', 'nobody', '--yes'], 1, 'nobody'],
    ];
    const ended = await Promise.all(wrong.map(([args]) => run(['user', ...args, ...OF_ACME])));
    expect(ended).toMatchObject(
      wrong.map(([, code, said]) => ({ code, stdout: '', stderr: expect.stringContaining(said) })),
    );
    expect(await trivet(['user', 'delete', 'ann', '--yes', ...OF_ACME])).toBe('ann is deleted\n');
    expect(await run(['user', 'show', 'ann', ...OF_ACME])).toMatchObject({ code: 1 });
  });

  it('trivet login list and end, of oneself and of a user', async () => {
    const { viewer } = line.house.acme;
    const own = { who: viewer };
    for (let n = 0; n < 3; n++) await line.house.login(viewer, { headers: { 'user-agent': 'Firefox/140' } });
    const [first] = (await json(['login', 'list'], own)).items;
    expect(await trivet(['login', 'list'], own)).toMatch(/^FROM +BY +BROWSER[\s\S]*password +Firefox\/140/);
    expect(await trivet(['login', 'end', first.id], own)).toBe(`${first.id} has ended\n`);
    expect(await trivet(['login', 'end', '--all'], own)).toBe('2 logins of the-viewer@acme have ended\n');
    expect(await trivet(['login', 'list'], own)).toBe('nobody is logged in\n');
    await line.house.login(viewer);
    const theirs = ['--user', viewer.name, ...OF_ACME];
    expect((await json(['login', 'list', ...theirs])).items).toHaveLength(1);
    expect(await trivet(['login', 'end', '--all', ...theirs])).toBe('1 logins of the-viewer@acme have ended\n');
    const wrong = [['end'], ['end', first.id, '--all'], ['end', first.id, ...theirs], ['list', ...OF_ACME]];
    const ended = await Promise.all(wrong.map(args => run(['login', ...args])));
    expect(ended.map(({ code }) => code)).toEqual([65, 65, 65, 65]);
  });

  it('trivet user reset-factors, through the gateway and without', async () => {
    const { viewer } = line.house.acme;
    const since = 'SELECT totp_since FROM trivet.tenant_user WHERE id = $1';
    for (const args of [[], ['--offline']]) {
      await line.house.query('UPDATE trivet.tenant_user SET totp_since = now() WHERE id = $1', [viewer.userId]);
      const env = args.length > 0 ? line.offline : {};
      expect(await trivet(['user', 'reset-factors', viewer.name, ...OF_ACME, ...args], { env })).toBe(
        'the-viewer logs in with its password alone; its logins have ended\n',
      );
      expect(await line.house.query(since, [viewer.userId])).toEqual([{ totp_since: null }]);
    }
    expect(await run(['user', 'reset-factors', 'nobody', ...OF_ACME])).toMatchObject({ code: 1 });
  });

  it('trivet token create --login asks for a code where somebody can be asked', async () => {
    const { viewer } = line.house.acme;
    await line.house.query('UPDATE trivet.tenant_user SET totp_since = now() WHERE id = $1', [viewer.userId]);
    const login = ['token', 'create', 'laptop', '--login', viewer.username, '--password-file', '-'];
    expect(await run(login, { input: viewer.password })).toMatchObject({
      code: 77,
      stderr: expect.stringContaining('make the token at the page'),
    });
    await line.house.query('UPDATE trivet.tenant_user SET totp_since = NULL WHERE id = $1', [viewer.userId]);
  });

  it('trivet tenant show and rename', async () => {
    await trivet(['tenant', 'create', 'renamed']);
    expect(await trivet(['tenant', 'rename', 'renamed', 'The Shop'])).toBe('renamed is shown as The Shop\n');
    const shown = await trivet(['tenant', 'show', 'renamed']);
    expect(shown).toMatch(/^shown as +The Shop$/m);
    expect(shown).toMatch(/^state +active$/m);
    expect(await run(['tenant', 'rename', 'renamed', 'x'.repeat(201)])).toMatchObject({ code: 65 });
    expect(await run(['tenant', 'rename', 'renamed', 'x'], { who: line.house.acme.admin })).toMatchObject({ code: 1 });
    expect(await run(['tenant', 'show', 'nobody'])).toMatchObject({ code: 1 });
    await trivet(['tenant', 'delete', 'renamed', '--confirm', 'renamed']);
  });

  it('trivet endpoint show and change', async () => {
    await trivet(['endpoint', 'create', 'shown', '--protocol', 'csi', ...OF_ACME]);
    const change = ['endpoint', 'change', 'shown', ...OF_ACME];
    expect(await trivet([...change, '--driver-name', 'csi.acme.example', '--reason', 'as in Kubernetes'])).toBe(
      'shown is csi.acme.example now\n',
    );
    const shown = await trivet(['endpoint', 'show', 'shown', ...OF_ACME]);
    expect(shown).toMatch(/^driver +csi\.acme\.example$/m);
    expect(shown).toMatch(/^backend +all of the tenant$/m);
    expect(await run(change)).toMatchObject({ code: 2, stderr: expect.stringContaining('--driver-name is missing') });
    expect(await run([...change, '--driver-name', '-.-'])).toMatchObject({ code: 65 });
    await trivet(['endpoint', 'delete', 'shown', ...OF_ACME]);
    expect(await run(['endpoint', 'show', 'shown', ...OF_ACME])).toMatchObject({ code: 1 });
  });

  it('trivet protection show', async () => {
    await trivet(['protection', 'create', 'day', 'hourly:1h:24', 'nightly:1d@02:30:7', ...OF_ACME]);
    const shown = await trivet(['protection', 'show', 'day', ...OF_ACME]);
    expect(shown).toMatch(/^schedules +hourly:1h:24 UTC\n +nightly:1d@02:30:7 UTC$/m);
    expect(await json(['protection', 'show', 'day', ...OF_ACME])).toMatchObject({ name: 'day', volumes: 0 });
    expect(await run(['protection', 'show', 'absent', ...OF_ACME])).toMatchObject({ code: 1 });
    const changed = await trivet(['protection', 'change', 'day', 'hourly:2h:12', ...OF_ACME]);
    expect(changed).toBe('day is changed, for 0 volumes\n');
    expect(await json(['protection', 'show', 'day', ...OF_ACME])).toMatchObject({
      schedules: [{ name: 'hourly', everyMinutes: 120, retain: 12 }],
    });
    await trivet(['protection', 'delete', 'day', ...OF_ACME]);
  });

  it('trivet policy show and change say what a policy sets', async () => {
    await trivet(['policy', 'create', 'cold', 'pool=slow', 'thick=true', ...OF_ACME]);
    expect(await trivet(['policy', 'change', 'cold', 'thick=', 'folder=old', ...OF_ACME])).toMatch(/^cold is changed/);
    expect(await json(['policy', 'show', 'cold', ...OF_ACME])).toMatchObject({
      config: { pool: 'slow', folder: 'old' },
    });
    expect(await run(['policy', 'change', 'cold', ...OF_ACME])).toMatchObject({ code: 65 });
    await trivet(['policy', 'delete', 'cold', ...OF_ACME]);
  });

  it('trivet token rotate makes another, into a file alone, and lets the former work for a while', async () => {
    const { id, token } = await json(['token', 'create', 'ci', '--role', 'viewer', ...OF_ACME, '--user', 'the-admin']);
    const file = join(line.home, 'ci.token');
    const said = await trivet(['token', 'rotate', id, '--grace', '60', '--output', file, ...OF_ACME]);
    expect(said).toMatch(/^token ci of the-admin@acme, viewer, is in /);
    const other = readFileSync(file, 'utf8').trim();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(other).not.toBe(token);
    for (const each of [token, other])
      expect((await line.house.call(each, 'GET', '/session')).body).toMatchObject({ username: 'the-admin@acme' });
    expect(await run(['token', 'rotate', id, ...OF_ACME])).toMatchObject({ code: 1 });
  });
}
