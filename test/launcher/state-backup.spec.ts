import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { DumpWriter, readDump } from '#platform/dump/dump-file';
import { parts } from '#test/support/parts';
import { TestHomes } from './cli.js';

const homes = new TestHomes();
afterAll(() => homes.clear());

/** Without Ceph, which needs its seconds: with the object store of the run, where there is one. */
const home = homes.at('home');
const { rgw } = parts();
Object.assign(home.settings, {
  TRIVET_REDIS_URL: 'none',
  ...(rgw && {
    TRIVET_RGW_ENDPOINT: rgw.endpoint,
    TRIVET_RGW_REGION: rgw.region,
    TRIVET_RGW_ACCESS_KEY_FILE: rgw.accessKeyFile,
    TRIVET_RGW_SECRET_KEY_FILE: rgw.secretKeyFile,
  }),
});
const file = join(homes.folder, 'trivet.dump');
const key = join(homes.folder, 'kek');
const PATIENCE_MS = 180_000;
const up = () => home.must('up', '--detach', '--no-install');
const tenants = () => home.must('tenant', 'list');

/** The backup with a row that no table takes. */
async function writeWrong(path: string): Promise<void> {
  const writer = new DumpWriter(path);
  for await (const { name, bytes } of readDump(file))
    await writer.add(name, name.startsWith('data/tenant/') ? Buffer.from('no row\n') : bytes);
  await writer.finish();
}

it(
  'a home is backed up while it runs, and put back into itself: what was there is kept aside',
  async () => {
    await up();
    await home.must('tenant', 'create', 'acme');
    expect(await home.must('appliance', 'backup', file)).toContain(`keep a copy of ${home.file('kek')}`);
    await home.must('tenant', 'create', 'afterwards');
    copyFileSync(home.file('kek'), key);

    expect(await home.run('appliance', 'restore', file)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('./trivet down, then restore'),
    });
    await home.must('down');
    const refused = await home.run('appliance', 'restore', file);
    const [, data] =
      /has a database already: --replace moves it to (.*data)\.before-\w+ before the restore/.exec(refused.stderr) ??
      [];
    expect({ ...refused, data }).toMatchObject({ code: 78, data: expect.any(String) });
    const damaged = join(homes.folder, 'damaged.dump');
    writeFileSync(damaged, readFileSync(file).subarray(0, -5_000));
    const { code, stdout, stderr } = await home.run('appliance', 'restore', damaged, '--replace');
    expect({ code, said: stdout + stderr }).toEqual({ code: 65, said: expect.not.stringContaining('is kept in') });

    // Whole and of our own making, and PostgreSQL refuses its rows when the database that was there is aside already.
    const wrong = join(homes.folder, 'wrong.dump');
    await writeWrong(wrong);
    const before = statSync(data!).ino;
    const failed = await home.run('appliance', 'restore', wrong, '--replace');
    expect(failed.stdout).toContain('nothing was restored: the database that was there is back');
    expect(failed.code).not.toBe(0);
    expect(statSync(data!).ino).toBe(before);
    expect(readdirSync(dirname(data!)).filter(name => name.includes('.before-'))).toEqual([]);

    const said = await home.must('appliance', 'restore', file, '--replace');
    expect(said).toMatch(/is kept in .*data\.before-/);
    expect(said).toContain('./trivet up starts it');
    await up();
    expect(await tenants()).toContain('acme');
    expect(await tenants()).not.toContain('afterwards');
  },
  PATIENCE_MS,
);

it(
  'and into a home that is new, by the key file: whoever logged in before does so again',
  async () => {
    const credentials = readFileSync(home.file('credentials.json'), 'utf8');
    await home.must('down', '--purge', '--yes');
    mkdirSync(home.home, { mode: 0o711 });
    expect(await home.run('appliance', 'restore', file)).toMatchObject({
      code: 78,
      stderr: expect.stringMatching(
        /sealed with key \w+, and there is no key file\n.*put the key file .* to .*\/home\/kek/,
      ),
    });
    expect(readdirSync(home.home)).not.toContain('postgres');
    copyFileSync(key, home.file('kek'));
    await home.must('appliance', 'restore', file);
    expect(readFileSync(home.file('credentials.json'), 'utf8')).toBe(credentials);
    expect(statSync(home.file('credentials.json')).mode & 0o777).toBe(0o600);
    await up();
    expect(await tenants()).toContain('acme');
    expect(readFileSync(home.file('credentials.json'), 'utf8')).toBe(credentials);
  },
  PATIENCE_MS,
);
