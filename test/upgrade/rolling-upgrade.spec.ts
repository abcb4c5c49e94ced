import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { NODE_FLAGS } from '#platform/process/node-flags';
import { migrate } from '#platform/schema/migrate';
import { CosiClient } from '#test/cosi/client';
import { Jobs } from '#test/crash/jobs';
import { FakeControl } from '#test/fakes/object/fake-control';
import { DaemonProcess, type Role } from '#test/support/appliance';
import { compileCache } from '#test/support/compile-cache';
import { freePort } from '#test/support/free-port';
import { until } from '#test/support/parts';
import { commitBefore, type Made, ReleaseBefore } from '#test/upgrade/release-before';

const CALLERS = 8;
const EACH_PHASE = 30;
const LIMIT_MS = 300_000;

const before = commitBefore();
if ('reason' in before) process.stderr.write(`the rolling upgrade is not tested: ${before.reason}\n`);

describe.skipIf('reason' in before)('two gateways and two workers of the release before', () => {
  let release: ReleaseBefore;
  let made: Made;
  let database: pg.Pool;
  let fake: FakeControl;
  const processes: DaemonProcess[] = [];
  const clients: CosiClient[] = [];

  beforeAll(async () => {
    release = await ReleaseBefore.build((before as { commit: string }).commit);
    made = await release.make();
    database = new pg.Pool({ connectionString: made.superuserUrl, max: 2 });
    database.on('error', () => {});
    fake = new FakeControl(made.fakeFile);
  }, LIMIT_MS);
  afterAll(async () => {
    for (const client of clients) client.close();
    await Promise.all(processes.map(process => process.stop('SIGKILL')));
    fake?.close();
    await database?.end();
    release?.remove();
    if (made) rmSync(made.folder, { recursive: true, force: true });
  });

  const socketOf = (n: number): string => join(made.folder, 'cosi', `cosi-${n}.sock`);
  async function start(role: Role, n: number, entry: string): Promise<DaemonProcess> {
    const port = await freePort();
    const listen = role === 'gateway' ? 'TRIVET_HTTP_LISTEN' : 'TRIVET_WORKER_METRICS_LISTEN';
    const env = { ...made.env, COSI_ENDPOINT: `unix://${socketOf(n)}`, [listen]: `127.0.0.1:${port}` };
    const child = spawn(process.execPath, [...NODE_FLAGS, entry], {
      env: { PATH: '/usr/bin:/bin', NODE_NO_WARNINGS: '1', ...compileCache(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const started = new DaemonProcess(role, child, `http://127.0.0.1:${port}`);
    processes.push(started);
    return started.ready();
  }
  const old = (role: Role, n: number) => start(role, n, release.entry(role));
  const ours = (role: Role, n: number) => start(role, n, join(PACKAGE_ROOT, 'dist/test/entry', `${role}.js`));
  const rows = async <Row extends object>(text: string): Promise<Row[]> => (await database.query<Row>(text)).rows;

  it(
    'are replaced one by one under load, after the migrations: each creation happens once, and nothing is parked',
    async () => {
      let gateways = await Promise.all([old('gateway', 0), old('gateway', 1)]);
      let workers = await Promise.all([old('worker', 0), old('worker', 1)]);

      // Each caller goes on with the other gateway when its own leaves it, as a sidecar of either does.
      const accepted: string[] = [];
      let isOver = false;
      const callers = Array.from({ length: CALLERS }, async (_, caller) => {
        const jobs = [0, 1].map(n => {
          const client = new CosiClient(socketOf(n));
          clients.push(client);
          return new Jobs(client);
        });
        for (let n = 0; !isOver; n++) {
          const name = `rolled-${caller}-${n}`;
          for (let attempt = caller; ; attempt++) {
            const { code, message } = await jobs[attempt % 2]!.create(name);
            if (code === 'OK') break;
            expect(['UNAVAILABLE', 'ABORTED', 'CANCELLED', 'DEADLINE_EXCEEDED'], `${name}: ${message}`).toContain(code);
            await new Promise(resolve => setTimeout(resolve, 50));
          }
          accepted.push(name);
        }
      });
      const more = async (what: string) => {
        const wanted = accepted.length + EACH_PHASE;
        await until(`${EACH_PHASE} more are made ${what}`, () => accepted.length >= wanted, 60_000);
      };
      await more('by the release before');

      expect((await migrate(made.ownerUrl)).applied).not.toEqual([]);
      await more('by the release before, with the schema of this one');
      for (const n of [0, 1]) {
        await gateways[n]!.stop();
        gateways = gateways.with(n, await ours('gateway', n)) as typeof gateways;
        await more(`with gateway ${n} replaced`);
      }
      for (const n of [0, 1]) {
        await workers[n]!.stop();
        workers = workers.with(n, await ours('worker', n)) as typeof workers;
        await more(`with worker ${n} replaced`);
      }
      isOver = true;
      await Promise.all(callers);

      const open = "SELECT kind, resource_name, state, error FROM trivet.operation WHERE state <> 'succeeded'";
      await until('all operations ended', async () => {
        return (await rows<{ state: string }>(open)).every(({ state }) => state !== 'pending' && state !== 'running');
      });
      expect(await rows(open), 'nothing is parked, and nothing has failed').toEqual([]);
      const operations = await rows<{ name: string }>(
        "SELECT resource_name AS name FROM trivet.operation WHERE kind = 'bucket.create'",
      );
      expect(operations.map(({ name }) => name).sort()).toEqual([...accepted].sort());
      const buckets = await rows<{ name: string; id: string }>(
        "SELECT name, id FROM trivet.bucket WHERE state = 'ready'",
      );
      expect(buckets.map(({ name }) => name).sort()).toEqual([...accepted].sort());
      const stored = fake.buckets().map(({ name, incarnation }) => `${name} ${incarnation}`);
      expect(stored.sort()).toEqual(buckets.map(({ name, id }) => `${name} ${id}`).sort());
    },
    LIMIT_MS,
  );
});
