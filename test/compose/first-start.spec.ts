import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parts, until } from '#test/support/parts';
import { Engine } from './engine.js';

const { docker } = parts();

/** Stops the making of new data, at this place of it, until the container is killed. */
const WAIT = '#!/bin/sh\necho waits-here\nsleep infinity\n';

/** In the middle of initdb: what looks like data, and is none. */
const HALF = `#!/bin/sh\necho 18 >"$PGDATA/PG_VERSION"\n${WAIT}`;

describe.skipIf(!docker)('a first start that is interrupted', { timeout: 600_000 }, () => {
  let engine: Engine;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'first-start-'));
    engine = await Engine.start(docker!.folder);
  }, 900_000);
  afterEach(() => engine?.tryCompose('down', '--volumes', '--timeout', '1'));
  afterAll(async () => {
    if (folder) rmSync(folder, { recursive: true });
    await engine?.stop();
  }, 300_000);

  /** docker-compose.yml, where that service has this besides. */
  const besides = (service: string, more: object): string[] => {
    const path = join(folder, `${service}.yml`);
    writeFileSync(path, JSON.stringify({ services: { [service]: more } }));
    return ['--file', 'docker-compose.yml', '--file', path];
  };
  const waits = (service: string) =>
    until(`${service} waits`, async () => (await engine.compose(['logs', service])).includes('waits-here'), 120_000);
  /** Its exit code. */
  const makeRoles = async () => {
    await engine.compose(['up', '--detach', 'roles']);
    return Number(await engine.docker('wait', await engine.container('roles')));
  };
  const asSuperuser = (sql: string) =>
    engine.compose([
      'exec',
      '--no-TTY',
      'postgres',
      'psql',
      '--username',
      'postgres',
      '--tuples-only',
      '--command',
      sql,
    ]);

  it.each([
    { when: 'while its data are made', script: HALF, at: '/usr/local/pgsql/bin/initdb' },
    { when: 'before it serves them', script: WAIT, at: '/docker-entrypoint-initdb.d/05-wait.sh' },
  ])('of PostgreSQL is done again, and its roles can log in: $when', async ({ script, at }) => {
    const path = join(folder, 'wait.sh');
    writeFileSync(path, script, { mode: 0o755 });
    const stopped = besides('postgres', { volumes: [`${path}:${at}:ro`] });
    await engine.compose([...stopped, 'up', '--detach', 'postgres']);
    await waits('postgres');
    await engine.compose(['kill', 'postgres']);
    await engine.compose(['up', '--detach', '--wait', 'postgres']);
    // Not left as the data were at that moment: who came from another container was refused for ever.
    expect(await makeRoles()).toBe(0);
    expect(await asSuperuser("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'trivet_%'")).toContain('3');
    await asSuperuser('CREATE TABLE kept ()');
    await engine.compose(['kill', 'postgres']);
    await engine.compose(['up', '--detach', '--wait', 'postgres']);
    expect(await asSuperuser('SELECT count(*) FROM kept')).toContain('0');
  });

  it('of the roles is finished by the next one, which gives them the passwords of their files', async () => {
    await engine.compose(['up', '--detach', '--wait', 'postgres']);
    await asSuperuser("CREATE ROLE trivet_owner LOGIN PASSWORD 'another'");
    expect(await makeRoles()).toBe(0);
    expect(await makeRoles()).toBe(0);
  });

  it('of the object store is not healthy by the keys of one that was', async () => {
    await engine.compose(['up', '--detach', '--wait', 'rgw']);
    const keys = () => engine.compose(['exec', '--no-TTY', 'rgw', 'cat', '/run/rgw-keys/access-key']);
    const former = await keys();
    await engine.compose(['rm', '--stop', '--force', 'rgw']);
    await engine.docker('volume', 'rm', 'trivet_rgw');
    // Its administrator is not made while this is in the way.
    writeFileSync(join(folder, 'radosgw-admin'), WAIT, { mode: 0o755 });
    const stopped = besides('rgw', { volumes: [`${join(folder, 'radosgw-admin')}:/usr/local/bin/radosgw-admin:ro`] });
    await engine.compose([...stopped, 'up', '--detach', 'rgw']);
    const served = ['exec', '--no-TTY', 'rgw', 'curl', '--silent', '--fail', 'http://127.0.0.1:7480/'];
    await until('it serves', async () => (await engine.tryCompose(...served)).code === 0, 120_000);
    // What the health check says of it, and not when it last did.
    const check = JSON.parse(await engine.inspect('rgw', '{{json .Config.Healthcheck.Test}}')) as string[];
    expect((await engine.tryCompose('exec', '--no-TTY', 'rgw', 'sh', '-c', check[1]!)).code).not.toBe(0);
    await engine.compose(['kill', 'rgw']);
    await engine.compose(['up', '--detach', '--wait', '--force-recreate', 'rgw']);
    expect(await keys()).not.toBe(former);
  });
});
