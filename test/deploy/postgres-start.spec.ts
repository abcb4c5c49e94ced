import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { commandsOf } from '#test/support/deploy-readme';

/** In the place of the image's entry point; what it does is what a test says. */
const MAKES = 'mkdir -p "$PGDATA"; echo "$PG_MAJOR" > "$PGDATA/PG_VERSION"; echo row > "$PGDATA/row"';
const IS_KILLED = 'mkdir -p "$PGDATA"; echo "$PG_MAJOR" > "$PGDATA/PG_VERSION"; kill -9 $$';

let volume: string;
let bin: string;
beforeEach(() => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-postgres-'));
  volume = join(folder, 'volume');
  bin = join(folder, 'bin');
  mkdirSync(volume);
  mkdirSync(bin);
  // Only root gives files away.
  writeFileSync(join(bin, 'chown'), '#!/bin/sh\necho "$@" >> "$(dirname "$0")/chowned"\n', { mode: 0o755 });
  writeFileSync(join(bin, 'sleep'), '#!/bin/sh\n', { mode: 0o755 });
  script('start.sh');
  script('99-made.sh');
});
afterEach(() => rmSync(join(volume, '..'), { recursive: true }));

/** Of deploy/postgres, with this volume. */
function script(name: string): void {
  const text = readFileSync(join(PACKAGE_ROOT, 'deploy/postgres', name), 'utf8');
  writeFileSync(join(bin, name), text.replaceAll('/var/lib/postgresql', volume), { mode: 0o755 });
}
const data = (major: number) => join(volume, String(major), 'docker');
const row = (major: number) => existsSync(join(data(major), 'row'));

function start(major: number, entrypoint: string): { status: number | null; stderr: string } {
  writeFileSync(join(bin, 'docker-entrypoint.sh'), `#!/bin/sh\nset -eu\n${entrypoint}\n`, { mode: 0o755 });
  const env = { PATH: `${bin}:/usr/bin:/bin`, PGDATA: data(major), PG_MAJOR: String(major) };
  return spawnSync('sh', [join(bin, 'start.sh'), 'postgres'], { env, encoding: 'utf8' });
}
/** A first start as a whole. */
const makes = (major: number) => start(major, `${MAKES}; ${join(bin, '99-made.sh')}`);
/** One that finds what it needs. */
const serves = (major: number) => start(major, 'cat "$PGDATA/row"');

describe("start.sh of PostgreSQL's container", () => {
  it('keeps what a whole first start made', () => {
    expect(makes(18).status).toBe(0);
    expect(serves(18).status).toBe(0);
    expect(serves(18).status).toBe(0);
  });

  it('makes anew what an interrupted first start left, however often it is interrupted', () => {
    for (let n = 0; n < 2; n++) {
      start(18, IS_KILLED);
      writeFileSync(join(data(18), 'half'), '');
      // Whoever ends it before it had given the mark away.
      rmSync(join(bin, 'chowned'));
    }
    expect(makes(18).status).toBe(0);
    expect(existsSync(join(data(18), 'half'))).toBe(false);
    expect(readFileSync(join(bin, 'chowned'), 'utf8')).toContain(join(volume, '18', 'first-start'));
  });

  it('begins nothing beside data of another version, and the server of that one still finds them', () => {
    makes(18);
    for (let n = 0; n < 2; n++) {
      const { status, stderr } = start(19, MAKES);
      expect(status).toBe(1);
      expect(stderr).toMatch(/has data of PostgreSQL 18, which 19 cannot read: .*; no data were changed\n$/);
    }
    expect(serves(18).status).toBe(0);
    expect(row(18)).toBe(true);
  });

  it.each(['', 'data'])('nor beside those of an image before 18, in the folder "%s" of the volume', folder => {
    mkdirSync(join(volume, folder), { recursive: true });
    writeFileSync(join(volume, folder, 'PG_VERSION'), '16\n');
    expect(start(18, MAKES)).toMatchObject({ status: 1, stderr: expect.stringContaining('data of PostgreSQL 16') });
    expect(existsSync(join(volume, '18'))).toBe(false);
  });

  it('goes by the data that are moved back, whatever became of those of the newer version', () => {
    makes(18);
    mkdirSync(join(volume, '.before'));
    renameSync(join(volume, '18'), join(volume, '.before', '18'));
    start(19, IS_KILLED);
    rmSync(join(volume, '19'), { recursive: true });
    renameSync(join(volume, '.before', '18'), join(volume, '18'));
    expect(serves(18).status).toBe(0);
  });

  it('takes the mark of earlier releases, which was one for all versions', () => {
    makes(18);
    renameSync(join(volume, '18', 'first-start'), join(volume, 'first-start'));
    expect(serves(18).status).toBe(0);
    expect(readFileSync(join(volume, '18', 'first-start'), 'utf8')).toBe('made\n');
    // And what was interrupted by them.
    rmSync(join(volume, '18', 'first-start'));
    writeFileSync(join(volume, 'first-start'), '');
    expect(makes(18).status).toBe(0);
  });

  it('makes nothing anew that has a database of its own, whatever the mark says', () => {
    makes(18);
    mkdirSync(join(data(18), 'base', '16384'), { recursive: true });
    // As the start of an image of another version left it, by earlier releases.
    rmSync(join(volume, '18', 'first-start'));
    writeFileSync(join(volume, 'first-start'), '');
    expect(serves(18).status).toBe(0);
    expect(serves(18).status).toBe(0);
  });

  it('leaves no mark by which a release before would delete what another version has stored', () => {
    makes(18);
    mkdirSync(join(data(18), 'base', '16384'), { recursive: true });
    // That release, started with an image of the next version.
    rmSync(join(volume, '18', 'first-start'));
    writeFileSync(join(volume, 'first-start'), '');
    expect(start(19, MAKES).status).toBe(1);
    expect(readFileSync(join(volume, 'first-start'), 'utf8')).toBe('made\n');
    serves(18);
    expect(existsSync(join(volume, 'first-start'))).toBe(false);
  });

  it('makes no data anew beside those of another version, be they its own half-made ones', () => {
    makes(18);
    mkdirSync(join(data(18), 'base', '16384'), { recursive: true });
    mkdirSync(data(19), { recursive: true });
    writeFileSync(join(data(19), 'PG_VERSION'), '19\n');
    writeFileSync(join(volume, 'first-start'), '');
    rmSync(join(volume, '18', 'first-start'));
    writeFileSync(join(volume, '19', 'first-start'), '');
    expect(start(19, MAKES)).toMatchObject({ status: 1, stderr: expect.stringContaining('data of PostgreSQL 18') });
    expect(existsSync(join(data(19), 'PG_VERSION'))).toBe(true);
    expect(serves(18).status).toBe(0);
  });

  it('is left with all data by the documented way back, also when it is typed again', () => {
    const line = commandsOf('Containers', 'mkdir .after').join('\n');
    const [, text = ''] = /postgres -c '([^']+)'/.exec(line)!;
    const back = () => spawnSync('sh', ['-c', text.replaceAll('/var/lib/postgresql', volume)]).status;
    makes(18);
    expect(back()).not.toBe(0);
    expect(row(18)).toBe(true);
    mkdirSync(join(volume, '.before'));
    renameSync(join(volume, '18'), join(volume, '.before', '18'));
    makes(19);
    expect(back()).toBe(0);
    expect(serves(18).status).toBe(0);
    expect(existsSync(join(volume, '.after', '19', 'docker', 'row'))).toBe(true);
    expect(back()).not.toBe(0);
    expect(row(18)).toBe(true);
  });

  it('makes nothing anew that may be whole: data that have lost their version, or never had the mark', () => {
    makes(18);
    rmSync(join(data(18), 'PG_VERSION'));
    for (let n = 0; n < 2; n++)
      expect(start(18, MAKES)).toMatchObject({ status: 1, stderr: expect.stringContaining('was served') });
    rmSync(join(volume, '18', 'first-start'));
    for (let n = 0; n < 2; n++)
      expect(start(18, MAKES)).toMatchObject({ status: 1, stderr: expect.stringContaining('is not empty') });
    expect(row(18)).toBe(true);
  });
});
