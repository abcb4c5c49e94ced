import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { aboutDump } from '#platform/dump/load';
import { MIGRATIONS } from '#platform/migrations/all';
import { commandsOf } from '#test/support/deploy-readme';
import { parts } from '#test/support/parts';
import { commitBefore } from '#test/upgrade/release-before';
import { Engine } from './engine.js';
import { postgresBefore } from './postgres-before.js';

const { docker } = parts();
const before = commitBefore();
if (docker && 'reason' in before) process.stderr.write(`the upgrade under Compose is not tested: ${before.reason}\n`);

const THEIRS = { APPLIANCE_IMAGE: 'trivet:before', RGW_IMAGE: 'trivet-rgw:0.1.0' };
const MIGRATE = ['run', '--rm', '--no-TTY', '--no-deps', 'migrate'];
const REFUSE = `
  CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it is not to be'; END $$;
  CREATE TRIGGER refuse BEFORE INSERT ON trivet.migration FOR EACH ROW EXECUTE FUNCTION public.refuse()`;

/** In the order of an evening on which much goes wrong. */
describe.skipIf(!docker || 'reason' in before)('an upgrade from the release before', { timeout: 900_000 }, () => {
  let engine: Engine;
  let folder: string;
  /** With its own docker-compose.yml. */
  const startTheirs = () => engine.compose(['up', '--detach', '--wait'], THEIRS, engine.sources.before);
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'trivet-upgrade-'));
    engine = await Engine.start(docker!.folder, (before as { commit: string }).commit);
    engine.settings = await postgresBefore(engine, folder);
    await startTheirs();
    await engine.client('leave');
  }, 1_800_000);
  afterAll(async () => {
    await engine?.tryCompose('--profile', 'cli', 'down', '--volumes', '--timeout', '1');
    await engine?.stop();
    if (folder) rmSync(folder, { recursive: true });
  }, 300_000);

  const asSuperuser = (sql: string): Promise<string> => {
    const psql = ['psql', '--username', 'postgres', '--dbname', 'trivet', '--tuples-only', '--no-align'];
    return engine.compose(['exec', '--no-TTY', 'postgres', ...psql, '--command', sql]);
  };
  const applied = async () =>
    (await asSuperuser('SELECT name FROM trivet.migration ORDER BY id')).split('\n').filter(name => name !== '');
  const runs = async (image: string) => {
    for (const service of ['gateway', 'worker']) {
      expect(await engine.inspect(service, '{{.Config.Image}}')).toBe(image);
      expect(await engine.health(service), service).toBe('healthy');
    }
    await engine.client('find');
  };

  it('is refused where it must not be, and the release before goes on meanwhile', async () => {
    const later = 'Later1999999999999';
    await asSuperuser(`INSERT INTO trivet.migration ("timestamp", name) VALUES (1999999999999, '${later}')`);
    const found = await applied();
    const looked = await engine.tryCompose(...MIGRATE, 'migrate', '--check');
    expect(looked, looked.stderr).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^fail {2}schema: .*Later/m),
    });
    const refused = await engine.tryCompose(...MIGRATE);
    expect(refused).toMatchObject({ code: 78, stderr: expect.stringContaining('nothing was changed') });
    expect(await applied()).toEqual(found);
    await runs(THEIRS.APPLIANCE_IMAGE);
    await asSuperuser(`DELETE FROM trivet.migration WHERE name = '${later}'`);
  });

  it('that fails ends and says why, after a backup, and the release before starts with all that it had', async () => {
    const found = await applied();
    expect(found).not.toContain(MIGRATIONS.at(-1)!.name);
    await asSuperuser(REFUSE);
    const { code, stderr } = await engine.tryCompose('up', '--detach', '--wait');
    expect({ code, stderr }).toEqual({
      code: expect.any(Number),
      stderr: expect.stringContaining(`service "migrate" didn't complete successfully`),
    });
    expect(code).not.toBe(0);
    const said = await engine.compose(['logs', '--no-log-prefix', 'migrate']);
    expect(said).toMatch(/backup before the upgrade: \S+\/upgrade-backups\/before-\S+\.dump: \d+ rows/);
    expect(said).toMatch(/trivet: the migration \w+ failed: it is not to be; /);
    expect(said, 'no stack').not.toMatch(/^ {4}at /m);
    expect(await applied()).toEqual(found);
    await startTheirs();
    await runs(THEIRS.APPLIANCE_IMAGE);
    await asSuperuser('DROP FUNCTION public.refuse CASCADE');
  });

  it('migrates while the release before serves, is started, and everything is kept', async () => {
    const found = await applied();
    expect(await engine.compose(MIGRATE)).toContain('migrated: ');
    const names = await applied();
    expect(names.slice(0, found.length)).toEqual(found);
    expect(names.at(-1)).toBe(MIGRATIONS.at(-1)!.name);
    await runs(THEIRS.APPLIANCE_IMAGE);
    await engine.compose(['up', '--detach', '--wait']);
    await runs('trivet:0.1.0');
    expect(await applied()).toEqual(names);
  });

  it('is nothing that a backup by the documented commands has to wait for', async () => {
    await engine.asDocumented(commandsOf('Containers', 'compose cp').join('\n').replaceAll('/backup', folder));
    expect((await aboutDump(join(folder, 'trivet-monday.dump'))).migrations).toEqual(await applied());
  });

  it('of PostgreSQL to its next major version is refused without its commands, and keeps everything with them', async () => {
    const names = await applied();
    const version = () => asSuperuser("SELECT current_setting('server_version_num')::int / 10000");
    expect(await version()).toBe('17\n');
    const before = engine.settings;
    // Two minutes sooner than it is.
    const hasty = join(folder, 'hasty.yml');
    const healthcheck = { interval: '1s', retries: 3 };
    writeFileSync(hasty, JSON.stringify({ services: { postgres: { healthcheck } } }));
    engine.settings = { COMPOSE_FILE: `docker-compose.yml:${hasty}` };
    const { code, stderr } = await engine.tryCompose('up', '--detach', '--wait');
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('postgres-1 is unhealthy') });
    expect(await engine.compose(['logs', 'postgres'])).toContain(
      'the volume has data of PostgreSQL 17, which 18 cannot read',
    );

    engine.settings = before;
    await engine.asDocumented(commandsOf('Containers', 'stop postgres').join('\n'));
    engine.settings = {};
    await engine.asDocumented(commandsOf('Containers', 'appliance restore').join('\n'));
    expect(await version()).toBe('18\n');
    await runs('trivet:0.1.0');
    expect(await applied()).toEqual(names);
    await engine.asDocumented(commandsOf('Containers', '/.before').join('\n'));
    await engine.compose(['up', '--detach', '--wait']);
    await runs('trivet:0.1.0');
  });
});
