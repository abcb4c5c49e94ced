import { describe, expect, it } from 'vitest';
import { SCHEMA_VERSION } from '#platform/schema/schema-version';
import type { Finding } from './check.js';
import { clockFinding, clockState } from './clock.js';
import { commitFindings, engineFindings, kindFindings, schemaFindings, secretFindings } from './database.js';
import { leftProcesses } from './leftovers.js';
import {
  endpointFindings,
  operationFinding,
  slowCallFindings,
  storageHostFindings,
  taskFindings,
} from './through-api.js';

const shown = (findings: readonly Finding[]) => findings.map(({ level, detail }) => `${level} ${detail}`);

describe('doctor', () => {
  it('knows an engine role that sees too much, or too little', () => {
    const role = { name: 'trivet_engine', bypasses: false, operations: true, secrets: false };
    expect(shown(engineFindings(role))).toEqual(['ok trivet_engine']);
    expect(shown(engineFindings({ ...role, bypasses: true }))[0]).toContain('fail');
    expect(shown(engineFindings({ ...role, operations: false }))[0]).toBe('fail trivet_engine may not read operations');
    expect(shown(engineFindings({ ...role, secrets: true }))[0]).toBe('fail trivet_engine may read secrets');
  });

  it('tells operations that wait for a backend from stuck ones', () => {
    const quiet = {
      waiting: 3,
      running: 1,
      stuck: 0,
      waitingForBackend: 0,
      oldestWaitingMs: 1,
      perSecond: 0,
      trend: [],
    };
    const said = (more: object) => shown([operationFinding({ ...quiet, ...more })])[0];
    expect(said({})).toBe('ok 3 wait, none is stuck');
    expect(said({ waitingForBackend: 2 })).toBe('warn 2 wait for a backend that does not answer');
    expect(said({ waitingForBackend: 2, stuck: 1 })).toMatch(/^warn 1 wait for a person/);
  });

  it('names calls that do not return, whose they are, and what to do', () => {
    const oldest = { operation: 'op-1', what: 'volume.create of volume a', since: '2026-11-20T00:00:00Z' };
    const calls = { tenant: 'acme', backend: 'local', call: 'stage', operations: 1, oldest };
    expect(shown(slowCallFindings([]))).toEqual([]);
    expect(slowCallFindings([calls])[0]?.remedy).toContain('trivet operation release op-1');
    expect(shown(slowCallFindings([calls, { ...calls, operations: 3 }]))).toEqual([
      'warn stage of backend acme/local: volume.create of volume a, no answer since 2026-11-20T00:00:00Z',
      'warn stage of backend acme/local: 3 operations wait, first volume.create of volume a, no answer since 2026-11-20T00:00:00Z',
    ]);
  });

  it('says of storage hosts what they reach, what is where it should not be, and how a drain goes on', () => {
    const pool = { name: 'fast', path: '/srv/fast' };
    const host = {
      name: 'node-a',
      state: 'up' as const,
      draining: null,
      release: '1.2.3',
      workers: 1,
      pools: [],
      foreign: [],
      absent: [],
      homeOf: 2,
      portals: [],
      exporters: ['tgt'],
      clusters: ['10.0.0.5'],
      memoryFree: '1073741824',
      waiting: 0,
      seenAt: '2026-11-20T00:00:00Z',
    };
    const other = { ...host, name: 'node-b' };
    const first = (more: object) => storageHostFindings([{ ...host, ...more }, other])[0]!;
    const draining = { since: '2026-11-20T00:00:00Z', by: 'ann@appliance', reason: 'it goes' };
    expect(storageHostFindings([host])).toEqual([]);
    expect(shown([first({})])).toEqual([
      'ok up with release 1.2.3, has 2 pools, tgt, the cluster at 10.0.0.5, 1 GiB of memory free',
    ]);
    expect(first({ state: 'down' }).remedy).toContain('trivet pool move');
    expect(first({ draining }).detail).toMatch(/is drained since 2026-11-20T00:00:00Z by ann@appliance: it goes$/);
    expect(first({ draining }).remedy).toMatch(/^trivet storage-host show node-a.*undrain node-a/);
    expect(first({ draining, homeOf: 0 }).remedy).toContain('it may be switched off');
    expect(storageHostFindings([{ ...host, draining }])).toHaveLength(1);
    const [, absent] = storageHostFindings([{ ...host, absent: [pool] }, other]);
    expect(absent).toMatchObject({ level: 'fail', remedy: expect.stringContaining('trivet pool move fast --to HOST') });
    const foreign = { ...pool, home: 'node-b' };
    expect(storageHostFindings([{ ...host, foreign: [foreign] }, other])[2]?.remedy).toContain(
      'trivet pool move fast --to node-a',
    );
  });

  it('names periodic tasks that are late, and the worker that has the trouble', () => {
    const task = {
      name: 'pools',
      scope: 'worker' as const,
      workerId: '00000000-0000-4000-8000-000000000000',
      state: 'ok' as const,
      lastSuccessAt: '2026-11-20T00:00:00Z',
      durationMs: 12,
      error: null,
      lateAfterMs: 60_000,
    };
    const shared = { ...task, name: 'recycle-bin', scope: 'appliance' as const, workerId: null };
    const up = [{ id: task.workerId, pid: 77 }];
    expect(shown(taskFindings([task, { ...task, workerId: 'another' }, shared], up))).toEqual(['ok none of 2 is late']);
    const late = [
      { ...task, state: 'late' as const },
      { ...shared, state: 'late' as const, lastSuccessAt: null, error: 'error EIO' },
    ];
    expect(shown(taskFindings([task, ...late], up))).toEqual([
      'warn pools, pid 77: no success since 2026-11-20T00:00:00Z, a run does not end',
      'warn recycle-bin: has never succeeded, error EIO',
    ]);
  });

  it('tells an older schema from none and from a newer one', () => {
    expect(shown(schemaFindings(SCHEMA_VERSION))).toEqual(['ok of this release']);
    expect(shown(schemaFindings(SCHEMA_VERSION - 1))).toEqual(['fail the database is older than this program']);
    expect(shown(schemaFindings(SCHEMA_VERSION + 1))).toEqual(['warn the database is newer than this program']);
    expect(shown(schemaFindings(SCHEMA_VERSION + 2, SCHEMA_VERSION + 1))).toEqual([
      'fail the database was migrated by a newer release, with which this one can no longer run: update this program',
    ]);
    expect(schemaFindings(null)).toMatchObject([{ level: 'fail', remedy: expect.stringContaining('migrate') }]);
  });

  it('says whether commits wait for as many standbys as the operator wants', () => {
    const facts = { commit: 'on', names: 'ANY 1 (*)', standbys: 2 };
    const said = (more: object, wanted = 1) => shown(commitFindings({ ...facts, ...more }, wanted))[0];
    expect(said({})).toBe('ok wait for 1 standbys, 2 stream');
    expect(said({ names: 'FIRST 2 (a, b)' }, 2)).toMatch(/^ok/);
    expect(said({ names: 'a, b' })).toMatch(/^ok/);
    expect(said({}, 2)).toMatch(/^fail wait for 1 standbys, TRIVET_DATABASE_STANDBYS says 2/);
    expect(said({ names: '' })).toMatch(/^fail wait for 0 standbys/);
    expect(said({ commit: 'local' })).toMatch(/^fail wait for 0 standbys/);
    expect(said({ standbys: 0 })).toBe('fail wait for 1 standbys, and 0 stream');
  });

  it('names kinds of operations that no worker knows', () => {
    expect(shown(kindFindings({ kinds: [], waiting: 0 }))).toEqual(['ok a worker knows each that waits']);
    expect(shown(kindFindings({ kinds: ['volume.split'], waiting: 3 }))).toEqual([
      'warn 3 wait that no worker knows: volume.split',
    ]);
  });

  it('says how many stored secrets the key file does not open', () => {
    expect(shown(secretFindings(0, 0))).toEqual(['ok there are none']);
    expect(shown(secretFindings(7, 0))).toEqual(['ok 7 of 7 opened']);
    expect(shown(secretFindings(2, 5))).toEqual(['fail the key file opens 2 of 7 that were tried']);
  });

  it('asks the kernel whether its clock follows a time server', () => {
    expect(['follows', 'free', 'unknown']).toContain(clockState());
    expect(clockFinding('free')).toMatchObject({ level: 'warn', remedy: expect.stringContaining('chrony') });
    expect(clockFinding('follows').level).toBe('ok');
    expect(clockFinding('unknown').level).toBe('ok');
  });

  it('knows which processes belong to what runs', () => {
    // 10 is kept, 11 its child, 12 the child of that; 20 has a parent that is nobody's.
    const parents = new Map([
      [10, 1],
      [11, 10],
      [12, 11],
      [20, 19],
      [19, 1],
    ]);
    const marked = [10, 11, 12, 20].map(pid => ({ pid }));
    expect(leftProcesses(marked, new Set([10]), pid => parents.get(pid) ?? 0)).toEqual([20]);
    expect(leftProcesses(marked, new Set(), pid => parents.get(pid) ?? 0)).toEqual([10, 11, 12, 20]);
  });

  it('says why a socket is not open', () => {
    const endpoint = {
      id: '00000000-0000-4000-8000-000000000000',
      name: 'k8s',
      protocol: 'cosi' as const,
      backend: 'rgw',
      driverName: 'cosi.trivet.dev',
      state: 'active' as const,
      socket: '/run/k8s/cosi.sock',
      group: null,
      open: true,
      problem: null,
      version: 1,
      createdAt: '2026-11-20T00:00:00Z',
      updatedAt: '2026-11-20T00:00:00Z',
    };
    expect(shown(endpointFindings('acme', endpoint))).toEqual(['ok /run/k8s/cosi.sock']);
    const shut = { ...endpoint, open: false, problem: 'there is no group k8s on this host' };
    expect(shown(endpointFindings('acme', shut))).toEqual(['fail there is no group k8s on this host']);
    expect(endpointFindings('acme', { ...endpoint, state: 'suspended' })).toMatchObject([
      { level: 'warn', remedy: 'trivet endpoint resume k8s --tenant acme' },
    ]);
  });
});
