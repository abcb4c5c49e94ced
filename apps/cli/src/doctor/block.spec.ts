import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inspectProcess } from '#backends/linux/process-id';
import type { PoolReport } from '#storage/block/pools/pool-report';
import { optionsOf } from '../processes/mounts.js';
import { checkBlockTools } from './block.js';
import { certificateFinding } from './certificate.js';
import { auditFindings, moverFindings, poolFindings } from './pools.js';
import { checkTgt } from './tgt.js';

const GOOD: PoolReport = {
  name: 'default',
  uuid: 'marker-uuid',
  state: 'up',
  reason: null,
  clone: 'reflink',
  portals: [],
  withoutChap: false,
  totalBytes: '1000',
  usedBytes: '500',
  promisedBytes: '0',
  thinRatio: 1,
  daysToFull: null,
  volumes: 3,
  checkedAt: new Date(0),
  ageSeconds: 2,
};
const pool = (facts: Partial<PoolReport>): string[] =>
  poolFindings({ ...GOOD, ...facts }, '/srv/pool').map(({ level, detail }) => `${level} ${detail}`);

describe('doctor on pools', () => {
  it('says how full a good one is', () => {
    expect(pool({})).toEqual(['ok 50.0 % of 1000 B used, 3 volumes, marker marker-uuid']);
  });

  it('says who cannot reach one', () => {
    expect(pool({ portals: ['192.0.2.1:3260'] })).toHaveLength(1);
    expect(pool({ portals: ['192.0.2.1:3261', '192.0.2.2:3260'] })).toHaveLength(1);
    expect(pool({ portals: ['192.0.2.1:3261'] })[1]).toMatch(/^warn is served at 192\.0\.2\.1:3261, and nodes .*3260/);
    expect(pool({ portals: ['127.0.0.1:23456'] })[1]).toMatch(
      /^ok is served on this host alone, at 127\.0\.0\.1:23456/,
    );
  });

  it('says why one is down, and what to mount where', () => {
    const [found] = poolFindings({ ...GOOD, state: 'down', reason: 'its marker is missing' }, '/srv/pool');
    expect(found).toMatchObject({ level: 'fail', detail: 'its marker is missing' });
    expect(found?.remedy).toContain('/srv/pool');
  });

  it('warns above 85 %, fails above 95 %', () => {
    expect(pool({ usedBytes: '850' })).toEqual([expect.stringMatching(/^ok 85\.0 %/)]);
    expect(pool({ usedBytes: '851' })).toEqual([expect.stringMatching(/^warn 85\.1 %.*nothing new is made in it$/)]);
    expect(pool({ usedBytes: '951' })).toEqual([expect.stringMatching(/^fail 95\.1 %.*recycle bin/)]);
  });

  it('believes no old look', () => {
    expect(pool({ ageSeconds: 600 })).toEqual(['fail no worker has looked at it for 10 min']);
  });

  it('misses one that is not configured any more only when something is in it', () => {
    expect(poolFindings({ ...GOOD, volumes: 0 }, undefined)).toEqual([]);
    expect(poolFindings(GOOD, undefined)).toMatchObject([{ level: 'fail', remedy: 'name it again' }]);
  });

  it('warns of a file system that copies', () => {
    expect(pool({ clone: 'copy' })[1]).toContain('warn /srv/pool cannot share blocks');
  });

  it('finds what moves blocks under the change tracking', () => {
    const found = (running: string[], options: string[]) =>
      moverFindings(['/srv/pool'], new Set(running), () => options).map(({ detail }) => detail);
    expect(found(['node', 'tgtd'], ['rw', 'relatime'])).toEqual([]);
    expect(found(['xfs_fsr'], ['rw'])).toEqual(['xfs_fsr runs on this host']);
    expect(found([], ['rw', 'autodefrag'])).toEqual(['/srv/pool is mounted with autodefrag']);
    for (const compress of ['compress=zstd:3', 'compress-force=lzo', 'compress'])
      expect(found([], ['rw', compress])).toEqual([
        `/srv/pool is mounted with ${compress}: all that is compressed is told as changed`,
      ]);
    expect(found([], ['rw', 'compress=no', 'compressed'])).toEqual([]);
    expect(moverFindings([], new Set(['xfs_fsr']))).toEqual([]);
  });

  it('reads the options of the mount that is nearest', () => {
    const info = '1 0 0:1 / / rw,noatime - ext4 /dev/a rw,one\n2 1 0:2 / /proc rw,nosuid - proc proc rw,autodefrag\n';
    expect(optionsOf('/proc/self', info)).toEqual(['rw', 'nosuid', 'rw', 'autodefrag']);
    expect(optionsOf('/usr', info)).toEqual(['rw', 'noatime', 'rw', 'one']);
  });

  it('has a remedy for each kind of finding, and counts what is too much', () => {
    const report = (kind: string, subject: string) => ({
      kind,
      backend: 'local',
      subject,
      pool: 'default',
      message: 'said by the audit',
      firstSeen: new Date(0),
      lastSeen: new Date(0),
    });
    const kinds = ['lost_image', 'larger_image', 'orphan_image', 'orphan_target', 'protection_paused', 'of_tomorrow'];
    const found = auditFindings(kinds.map(kind => report(kind, 'it')));
    expect(found.map(({ level }) => level)).toEqual(['fail', 'warn', 'warn', 'warn', 'warn', 'warn']);
    for (const { remedy, detail } of found) {
      expect(remedy).toBeDefined();
      expect(detail).toContain('said by the audit');
    }
    const many = auditFindings(Array.from({ length: 25 }, (_, n) => report('orphan_image', `file-${n}`)));
    expect(many).toHaveLength(11);
    expect(many.at(-1)).toMatchObject({ detail: 'and 15 more', remedy: './trivet pool findings' });
  });
});

describe('doctor on the certificate', () => {
  const now = Date.parse('2026-11-20T00:00:00Z');
  it.each([
    [400, 'ok'],
    [29, 'warn'],
    [-1, 'fail'],
  ])('that ends in %i days: %s', (days, level) => {
    expect(certificateFinding(new Date(now + days * 86_400_000), true, now).level).toBe(level);
  });
});

describe('doctor on tools', () => {
  it('names the package of each that is missing, when it is needed', () => {
    const has = (name: string) => name === 'chattr';
    expect(checkBlockTools({ image: false, exported: false }, has)).toMatchObject([{ level: 'ok' }]);
    expect(checkBlockTools({ image: true, exported: true }, has).map(({ remedy }) => remedy)).toEqual([
      'apt-get install tgt',
      'apt-get install xfsprogs',
    ]);
  });
});

describe('doctor on tgtd', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'doctor-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const record = (name: string, pid: number, startTime: string): void => {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'daemon.json'), JSON.stringify({ tenantId: 't', pool: name, pid, startTime }));
  };

  it('continues one that was left stopped', async () => {
    const child = spawn('/bin/sleep', ['1000'], { stdio: 'ignore' });
    try {
      await once(child, 'spawn');
      const pid = child.pid as number;
      record('default', pid, (await inspectProcess(pid))!.id.startTime);
      expect(await checkTgt([folder], [], 300)).toMatchObject([{ name: 'tgtd.default', level: 'ok' }]);
      process.kill(pid, 'SIGSTOP');
      while (!(await inspectProcess(pid))?.stopped) await new Promise(setImmediate);
      const [found] = await checkTgt([folder], [], 300);
      expect(found).toMatchObject({ level: 'warn', detail: expect.stringContaining('it is continued') });
      expect(readFileSync(`/proc/${pid}/stat`, 'utf8')).not.toContain(') T ');
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('tells one that is gone from another process with its number', async () => {
    record('default', process.pid, 'of-another-boot:1');
    expect(await checkTgt([folder], ['127.0.0.1:1'])).toMatchObject([{ level: 'warn', detail: 'has ended' }]);
  });

  it('knocks at the portals while one runs', async () => {
    record('default', process.pid, (await inspectProcess(process.pid))!.id.startTime);
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const portal = `127.0.0.1:${port}`;
    expect((await checkTgt([folder], [portal])).at(-1)).toMatchObject({ level: 'ok', detail: 'open' });
    server.close();
    await once(server, 'close');
    expect((await checkTgt([folder], [portal])).at(-1)).toMatchObject({ level: 'fail', detail: 'ECONNREFUSED' });
  });

  it('finds nothing where there is no folder', async () => {
    expect(await checkTgt([join(folder, 'none')], [])).toEqual([]);
  });
});
