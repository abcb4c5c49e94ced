import { spawn, spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { programFile } from '#platform/package-root';
import { NODE_FLAGS } from '#platform/process/node-flags';
import { migrate } from '#platform/schema/migrate';
import { BlockJobs, hostOf, isPassing, type Reply } from '#test/block-crash/block-jobs';
import { PoolFiles } from '#test/block-crash/pool-files';
import { CosiClient } from '#test/cosi/client';
import { Jobs } from '#test/crash/jobs';
import { persistWhile } from '#test/crash/persist';
import { FakeBlockControl } from '#test/fakes/block/fake-block-control';
import { FakeControl } from '#test/fakes/object/fake-control';
import { DaemonProcess, type Role, removeKeys } from '#test/support/appliance';
import { compileCache } from '#test/support/compile-cache';
import { freePort } from '#test/support/free-port';
import { parts, until } from '#test/support/parts';
import { commitBefore, type Made, ReleaseBefore } from '#test/upgrade/release-before';

const CALLERS = 8;
const EACH_PHASE = 30;
const MIB = 1024 ** 2;
const LIMIT_MS = 300_000;

const before = commitBefore();
if ('reason' in before) process.stderr.write(`the rolling upgrade is not tested: ${before.reason}\n`);

describe.skipIf('reason' in before)('two gateways and two workers of the release before', () => {
  let release: ReleaseBefore;
  let made: Made;
  let database: pg.Pool;
  let fake: FakeControl;
  let fakeBlock: FakeBlockControl;
  let ports: number[];
  const processes: DaemonProcess[] = [];
  const clients: CosiClient[] = [];

  beforeAll(async () => {
    release = await ReleaseBefore.build((before as { commit: string }).commit);
    made = await release.make();
    database = new pg.Pool({ connectionString: made.superuserUrl, max: 2 });
    database.on('error', () => {});
    fake = new FakeControl(made.fakeFile);
    fakeBlock = new FakeBlockControl(made.blockFile);
    ports = [await freePort(), await freePort()];
  }, LIMIT_MS);
  afterAll(async () => {
    for (const client of clients) client.close();
    await Promise.all(processes.map(process => process.stop('SIGKILL')));
    fake?.close();
    fakeBlock?.close();
    await database?.end();
    release?.remove();
    const { redis } = parts();
    if (made && redis) await removeKeys(redis.url, made.redisPrefix);
    if (!made) return;
    // Snapshots are immutable.
    spawnSync('chattr', ['-R', '-f', '-i', made.poolPath]);
    rmSync(made.folder, { recursive: true, force: true });
  });

  const socketOf = (n: number): string => join(made.folder, 'cosi', `cosi-${n}.sock`);
  async function start(role: Role, n: number, entry: string): Promise<DaemonProcess> {
    const port = role === 'gateway' ? ports[n]! : await freePort();
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
  const ours = (role: Role, n: number) => start(role, n, programFile(`test-${role}`));
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
      // Each request goes to the other gateway than the one before.
      let requests = 0;
      const volumes = new BlockJobs({
        get cspUrl() {
          return `http://127.0.0.1:${ports[requests++ % 2]}`;
        },
      });
      // A gateway that stops has no words for who comes too late.
      const must = async (call: () => Promise<Reply>): Promise<Reply> => {
        const answers = await persistWhile(answer => isPassing(answer) || answer.code === '503', call);
        expect(['200', '204'], answers.at(-1)!.message).toContain(answers.at(-1)!.code);
        return answers.at(-1)!;
      };
      const host = hostOf('rolled');
      const published: string[] = [];
      const withVolumes = (async () => {
        await must(() => volumes.host(host));
        for (let n = 0; !isOver; n++) {
          const { id } = (await must(() => volumes.create(`rolled-${n}`, MIB))).body;
          await must(() => volumes.snapshot(id, 'cut'));
          await must(() => volumes.publish(id, host));
          if (n % 2 === 1) await must(() => volumes.unpublish(id, host));
          published.push(id);
        }
      })();
      withVolumes.catch(() => {});
      const more = async (what: string) => {
        const wanted = accepted.length + EACH_PHASE;
        const withCuts = published.length + 1;
        const enough = () => accepted.length >= wanted && published.length >= withCuts;
        // Who fails says why at once.
        await Promise.race([withVolumes, until(`more are made ${what}`, enough, 120_000)]);
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
      await Promise.all([...callers, withVolumes]);

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

      const asked = await rows<{ kind: string; found: number }>(
        "SELECT kind, count(*)::int AS found FROM trivet.operation WHERE kind ~ '^(volume|snapshot)' GROUP BY kind ORDER BY kind",
      );
      const n = published.length;
      expect(Object.fromEntries(asked.map(({ kind, found }) => [kind, found]))).toEqual({
        'volume.create': n,
        'snapshot.create': n,
        'volume.publish': n,
        'volume.unpublish': Math.floor(n / 2),
      });
      const there = await rows<{ id: string; volume: string }>(
        "SELECT s.id, s.volume_id AS volume FROM trivet.snapshot s JOIN trivet.volume v ON v.id = s.volume_id WHERE s.state = 'ready' AND v.state = 'ready'",
      );
      expect(there.map(({ volume }) => volume).sort()).toEqual([...published].sort());
      const held = await new PoolFiles(made.poolPath).images();
      const images = held.map(({ kind, path }) => `${kind} ${basename(path)}`);
      const wanted = there.flatMap(({ id, volume }) => [`volume ${volume}`, `snapshot ${id}`]);
      expect(images.sort()).toEqual(wanted.sort());
      const served = fakeBlock.targets().filter(({ initiators }) => initiators.length > 0);
      expect(served).toHaveLength(Math.ceil(n / 2));
    },
    LIMIT_MS,
  );
});
