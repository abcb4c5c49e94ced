import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { migrate } from '#platform/schema/migrate';
import { freePort } from '#test/support/free-port';
import { parts } from '#test/support/parts';
import { Home } from '../../apps/cli/src/home.js';
import type { PartContext } from '../../apps/cli/src/parts/part.js';
import { type Placement, place } from '../../apps/cli/src/parts/postgres-binaries.js';
import { createRoles, initialise, passwordsOf, urls } from '../../apps/cli/src/parts/postgres-cluster.js';
import { majorOfData, programsOf, whileItServes } from '../../apps/cli/src/parts/postgres-major.js';
import { type TestHome, TestHomes } from './cli.js';

/** A home as a release left it that brought PostgreSQL 17 (the npm package of that version wrote its data). */
const BEFORE = '17';
const homes = new TestHomes();
let home: TestHome;
let placement: Placement;

const aside = (): string => `${placement.data}.of-17.2`;
const whole = (): string => `${placement.data}.instead-of-17.2`;
const context = (): PartContext =>
  ({
    home: Home.find(home.home)!,
    mark: {},
    throwAway: false,
    install: true,
    say: () => {},
    signal: new AbortController().signal,
  }) as unknown as PartContext;

beforeAll(async () => {
  home = homes.at('home');
  // Without Ceph, which needs its seconds.
  home.settings.TRIVET_RGW_ENDPOINT = parts().rgw?.endpoint ?? 'http://127.0.0.1:9';
  await home.must('up', '--detach', '--parts-only', '--no-install');
  await home.must('down');
  const found = Home.find(home.home)!;
  placement = await place(found);
  rmSync(placement.data, { recursive: true });
  const old = { ...placement, binaries: await programsOf(BEFORE, placement, context()) };
  const passwords = passwordsOf(found);
  const port = await freePort();
  await initialise(old, passwords.postgres, context());
  await whileItServes(old, port, context(), async () => {
    await createRoles(port, passwords);
    const ownerUrl = urls(port, passwords).TRIVET_DATABASE_OWNER_URL!;
    await migrate(ownerUrl);
    await ask(ownerUrl, "INSERT INTO trivet.tenant (id, name) VALUES (gen_random_uuid(), 'kept')");
  });
  expect(majorOfData(placement.data)).toBe(BEFORE);
  // An attempt that was killed while it made the new one.
  mkdirSync(`${placement.data}.next`, { recursive: true });
  writeFileSync(join(`${placement.data}.next`, 'PG_VERSION'), '18\n');
  // An earlier one, and the lock of a server that was killed: this process's id is of somebody else now.
  mkdirSync(`${placement.data}.of-17`);
  writeFileSync(join(`${placement.data}.of-17`, 'earlier'), '');
  writeFileSync(join(placement.data, 'postmaster.pid'), `${process.pid}\n`);
}, 300_000);
afterAll(() => homes.clear());

async function ask(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}
const kept = () =>
  ask(home.environment().TRIVET_DATABASE_OWNER_URL!, "SELECT name FROM trivet.tenant WHERE name = 'kept'");

it('nothing is changed where the programs of that version cannot be had', async () => {
  const version = join(placement.data, 'PG_VERSION');
  writeFileSync(version, '12\n');
  const { code, stdout, stderr } = await home.run('up', '--parts-only', '--no-install');
  writeFileSync(version, `${BEFORE}\n`);
  expect(stdout + stderr).toMatch(/written by PostgreSQL 12, .*apt-get install postgresql-12; nothing was changed/);
  expect(code).not.toBe(0);
  expect(existsSync(`${placement.data}.of-12`)).toBe(false);
});

it('the data are taken over at the first up, and the old ones stay beside them', async () => {
  const said = await home.must('up', '--detach', '--parts-only');
  expect(said).toContain('the database of PostgreSQL 17 is taken over to 18');
  expect(said).toContain(`${aside()} is not needed any more`);
  expect(await kept()).toEqual([{ name: 'kept' }]);
  // It is the database that counts, and nothing is left to migrate.
  const looked = await home.must('migrate', '--check');
  expect(looked).toBe('ok    schema: it is up to date\n');
  const standing = await ask(
    home.environment().TRIVET_DATABASE_URL!,
    'SELECT declared_for = system_identifier AS counts FROM trivet.database_standing()',
  );
  expect(standing).toEqual([{ counts: true }]);
  expect(majorOfData(placement.data)).toBe('18');
  expect(majorOfData(aside())).toBe('17');
  expect(existsSync(join(`${placement.data}.of-17`, 'earlier'))).toBe(true);
  // Nobody who knew the old one's port has met it there meanwhile.
  const port = new URL(home.environment().TRIVET_DATABASE_OWNER_URL!).port;
  expect(readFileSync(join(aside(), 'trivet.conf'), 'utf8')).not.toContain(`port = ${port}\n`);
  expect(existsSync(`${placement.data}.next`)).toBe(false);
  expect(readdirSync(home.file('upgrade-backups'))).toContain('postgresql-17-to-18.dump');
  await home.must('down');
});

const folders = () =>
  readdirSync(dirname(placement.data))
    .filter(name => name.startsWith('data'))
    .sort();

it('an up that was killed between the two renames is finished by the next', async () => {
  renameSync(placement.data, whole());
  const said = await home.must('up', '--detach', '--parts-only');
  expect(said).not.toContain('taken over');
  expect(await kept()).toEqual([{ name: 'kept' }]);
  await home.must('down');
  expect(folders()).toEqual(['data', 'data.of-17', 'data.of-17.2']);
});

it('what was taken over is not thrown away for an empty cluster that another release made in its place', async () => {
  renameSync(placement.data, whole());
  mkdirSync(placement.data);
  writeFileSync(join(placement.data, 'PG_VERSION'), '17\n');
  const { code, stdout, stderr } = await home.run('up', '--parts-only', '--no-install');
  expect(stdout + stderr).toMatch(
    /made anew by another release .* is in .*data\.instead-of-17\.2: .*move that folder away/,
  );
  expect(code).not.toBe(0);
  expect(majorOfData(whole())).toBe('18');
  rmSync(placement.data, { recursive: true });
});

it('an up that was killed before the two renames begins anew, since the old one may have served since', async () => {
  renameSync(aside(), placement.data);
  const owner = passwordsOf(Home.find(home.home)!);
  const old = { ...placement, binaries: await programsOf(BEFORE, placement, context()) };
  const port = await freePort();
  await whileItServes(old, port, context(), async () => {
    await ask(
      urls(port, owner).TRIVET_DATABASE_OWNER_URL!,
      "INSERT INTO trivet.tenant (id, name) VALUES (gen_random_uuid(), 'later')",
    );
  });
  const said = await home.must('up', '--detach', '--parts-only');
  expect(said).toContain('the database of PostgreSQL 17 is taken over to 18');
  expect(
    await ask(
      home.environment().TRIVET_DATABASE_OWNER_URL!,
      "SELECT FROM trivet.tenant WHERE name IN ('kept', 'later')",
    ),
  ).toHaveLength(2);
  await home.must('down');
  expect(folders()).toEqual(['data', 'data.of-17', 'data.of-17.2']);
});
