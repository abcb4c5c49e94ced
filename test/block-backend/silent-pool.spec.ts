import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ImageRef, PoolStatus } from '#backends/block-backend';
import { failsWith } from '#backends/conformance/block-backend.conformance';
import { PoolAnswers } from '#backends/reflink/pool-answers';
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import { unleased } from '#platform/lease-signal';
import { OWNER, ownFolder, pool, xfsFolder } from '#test/block-backend/file-harness';
import { until } from '#test/support/parts';

const soon = () => unleased(AbortSignal.timeout(30_000));
const ANSWER_MS = 1_000;
/** More than there are threads for file calls, here and in a worker. */
const CALLS = 40;

/** A file system whose server takes every request and answers none. Needs root. */
class DeadMount {
  readonly #server: ChildProcess;

  constructor(private readonly path: string) {
    const mount = 'mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 dead "$0"';
    this.#server = spawn('sh', ['-c', `exec 3<>/dev/fuse; ${mount} && exec cat`, path], { stdio: 'pipe' });
  }

  async isMounted(): Promise<void> {
    await until('the dead file system is mounted', () =>
      execFileSync('cat', ['/proc/mounts'], { encoding: 'utf8' }).includes(` ${this.path} fuse `),
    );
  }

  /** Whoever waits for an answer gets an error. */
  remove(): void {
    this.#server.kill('SIGKILL');
    try {
      execFileSync('umount', ['-l', this.path], { stdio: 'ignore' });
    } catch {
      // It never was mounted.
    }
  }
}

describe.skipIf(!xfsFolder() || !existsSync('/dev/fuse'))('a pool whose file system does not answer', () => {
  let folder: string;
  let deadMount: DeadMount | undefined;
  let halfMount: DeadMount | undefined;
  let backend: ReflinkBackend;
  let share: ReflinkBackend;

  const pools = () => ['dead', 'half', 'good'].map(name => pool(name, join(folder, name)));
  const open = (answers = new PoolAnswers(ANSWER_MS)) => new ReflinkBackend(pools(), OWNER, answers);
  const stateOf = async (name: string): Promise<PoolStatus> =>
    (await backend.inspectPools(soon())).find(status => status.name === name)!;
  const image = (name: string): ImageRef => ({ pool: name, kind: 'volume', id: crypto.randomUUID(), folder: '' });
  const list = async (of: ReflinkBackend, name: string): Promise<void> => {
    for await (const _ of of.listImages(name, soon()));
  };

  beforeAll(async () => {
    folder = ownFolder();
    for (const { path } of pools()) mkdirSync(path);
    const answers = new PoolAnswers(ANSWER_MS);
    backend = open(answers);
    const dead = pool('shared', join(folder, 'dead', 'tenants', 'x'));
    share = new ReflinkBackend(
      [{ ...dead, within: { path: join(folder, 'dead'), ownerId: 'tenant' } }],
      OWNER,
      answers,
    );
    for (const { name } of pools()) await backend.preparePool(name, soon());
    deadMount = new DeadMount(join(folder, 'dead'));
    halfMount = new DeadMount(join(folder, 'half', 'volumes'));
    for (const mount of [deadMount, halfMount]) await mount.isMounted();
  });
  afterAll(() => {
    for (const mount of [deadMount, halfMount]) mount?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  it('is down, keeps no more than one thread, and the others are up', async () => {
    for (let n = 0; n < CALLS; n++) {
      expect(await stateOf('dead')).toMatchObject({ state: 'down', reason: expect.stringMatching(/does not answer/) });
      expect(await stateOf('good')).toMatchObject({ state: 'up' });
      await failsWith(backend.inspectImage(image('dead'), soon()), 'unavailable', /does not answer/);
      await failsWith(backend.preparePool('dead', soon()), 'unavailable', /does not answer/);
      await failsWith(share.inspectImage(image('shared'), soon()), 'unavailable', /does not answer/);
      expect(await backend.inspectImage(image('good'), soon())).toEqual({ state: 'absent' });
    }
    await backend.health(soon());
  });

  it('does not hold up its listing, whether it is known to be silent, or not, or falls silent in it', async () => {
    await failsWith(list(backend, 'dead'), 'unavailable', /does not answer/);
    await failsWith(list(open(), 'dead'), 'timeout');
    await failsWith(list(backend, 'half'), 'timeout');
    await list(backend, 'good');
  });

  it('is up again when it answers', async () => {
    deadMount?.remove();
    deadMount = undefined;
    await until('the pool is up', async () => (await stateOf('dead')).state === 'up');
    expect(await backend.inspectImage(image('dead'), soon())).toEqual({ state: 'absent' });
  });
});
