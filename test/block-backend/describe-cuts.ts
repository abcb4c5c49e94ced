import { type ChildProcess, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { BlockBackend, ImageRef, PoolStatus } from '#backends/block-backend';
import {
  BlockBackendBench,
  type BlockBackendHarness,
  failsWith,
  MIB,
} from '#backends/conformance/block-backend.conformance';
import { identityOf, threadsOf } from '#backends/linux/process-state';
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import { unleased } from '#platform/lease-signal';
import { PACKAGE_ROOT } from '#platform/package-root';
import { OWNER, ownFolder, pool, readFrom, removeFolder, writeTo } from '#test/block-backend/file-harness';
import { until } from '#test/support/parts';

const SCRIPTS = join(PACKAGE_ROOT, 'dist', 'test', 'block-backend');
const NODE = process.execPath;
const soon = () => unleased(AbortSignal.timeout(60_000));

const isStopped = (pid: number): boolean => {
  const states = [...threadsOf(pid).values()].map(({ state }) => state);
  return states.length > 0 && states.every(state => state === 'T');
};

/** The watchdog that a process started. */
function watchdogOf(parent: number): number | undefined {
  return readdirSync('/proc')
    .map(Number)
    .find(pid => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
        const isChild = stat.slice(stat.lastIndexOf(')')).split(' ')[2] === String(parent);
        return isChild && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('cut-watchdog');
      } catch {
        return false;
      }
    });
}

/** What the pause of a cut must hold to, on a file system of either kind. */
export function describeCuts(name: string, below: () => string | undefined): void {
  describe(`cuts of running writers: ${name}`, () => {
    let bench: BlockBackendBench;
    let backend: BlockBackend;
    let folder: string;
    let slow: ImageRef;
    let scripts: string | undefined;
    let clone: PoolStatus['clone'];
    const children: ChildProcess[] = [];

    beforeAll(async () => {
      folder = ownFolder(below());
      const pools = [pool('pool', join(folder, 'pool'))];
      mkdirSync(pools[0]!.path);
      backend = new ReflinkBackend(pools, OWNER);
      ({ clone } = await backend.preparePool('pool', soon()));
      const harness = { backend, pool: 'pool', write: writeTo(backend), read: readFrom(backend) };
      bench = new BlockBackendBench(harness as Partial<BlockBackendHarness> as BlockBackendHarness);
      slow = await makeSlow();
    });
    afterEach(async () => {
      process.execPath = NODE;
      if (scripts) rmSync(scripts, { recursive: true });
      scripts = undefined;
      for (const child of children.splice(0)) await kill(child);
      await bench.clean();
    });
    afterAll(() => removeFolder(folder, backend, ['pool']));

    function run(script: string, ...args: string[]): ChildProcess {
      const child = spawn(process.execPath, [join(SCRIPTS, `${script}.js`), ...args], { stdio: 'ignore' });
      children.push(child);
      return child;
    }

    const kill = (child: ChildProcess): Promise<unknown> =>
      new Promise(resolve => {
        if (child.exitCode !== null || child.signalCode !== null) return resolve(undefined);
        child.once('exit', resolve);
        child.kill('SIGKILL');
      });

    const counter = async (image: ImageRef): Promise<bigint> =>
      (await bench.harness.read(image, 0, 8)).readBigUInt64LE();

    async function writerOn(...images: ImageRef[]): Promise<number> {
      const child = run('counter-writer', ...images.map(image => backend.pathOf(image)));
      await until('the writer writes', async () => (await counter(images[0]!)) > 1_000n);
      return child.pid!;
    }

    async function goesOn(image: ImageRef, pid: number): Promise<void> {
      await until('the writer runs', () => !isStopped(pid));
      const before = await counter(image);
      await until('the writer writes on', async () => (await counter(image)) > before);
    }

    /** An image whose cut takes half a second at least. */
    async function makeSlow(): Promise<ImageRef> {
      const image = await bench.make({ kind: 'empty', sizeBytes: BigInt(1024 * MIB), thick: false });
      bench.made.pop();
      const [count, step, data] =
        clone === 'copy' ? [700, MIB, Buffer.alloc(MIB, 1)] : [50_000, 16_384, Buffer.alloc(4_096, 1)];
      const fd = openSync(backend.pathOf(image), 'r+');
      for (let n = 0; n < count; n++) writeSync(fd, data, 0, data.length, n * step);
      fsyncSync(fd);
      closeSync(fd);
      return image;
    }

    /** Watchdogs of cuts begin no copy until `release`; `reached`: a copy would begin, so its watchdog has looked. */
    function holdCopies(): { reached: () => boolean; release: () => void } {
      // Not beside the pool: nothing is executed from its file system.
      scripts = ownFolder();
      const [held, node] = [join(scripts, 'held'), join(scripts, 'node')];
      writeFileSync(held, '');
      const script = join(SCRIPTS, 'held-copies.js');
      const exec = `exec '${NODE}' --import '${script}' "$@"`;
      writeFileSync(node, `#!/bin/sh\nexport TRIVET_TEST_HELD='${held}'\n${exec}\n`, { mode: 0o700 });
      process.execPath = node;
      return { reached: () => existsSync(`${held}.reached`), release: () => rmSync(held) };
    }

    const cutsOf = (...sources: ImageRef[]) =>
      sources.map(source => {
        const image = bench.image('snapshot');
        return { image, stage: bench.stageRef(image), source };
      });

    it('see all images as of one instant, and the writer goes on', async () => {
      const [first, second] = [await bench.volume('', 8 * MIB), await bench.volume('', 8 * MIB)];
      const pid = await writerOn(first, second);
      for (let round = 0; round < 5; round++) {
        const cuts = cutsOf(second, first);
        const { pausedMs } = await backend.stageTogether(cuts, { pids: [pid], deadlineMs: 10_000 }, soon());
        expect(pausedMs).toBeGreaterThan(0);
        for (const { stage, image } of cuts) await backend.commit(stage, image, { readOnly: true }, soon());
        const [behind, ahead] = [await counter(cuts[0]!.image), await counter(cuts[1]!.image)];
        expect([behind, behind + 1n]).toContain(ahead);
        await goesOn(first, pid);
      }
    });

    it('of one image need a pause only where the data are copied', async () => {
      await writerOn(slow);
      const stage = () =>
        backend.stage(bench.stageRef(bench.image()), { kind: 'copy', source: slow, thick: false }, soon());
      if (clone === 'reflink') await stage();
      else await failsWith(stage(), 'failed_precondition', /was written while/);
    });

    it('longer than the deadline are given up, with the figures and with nothing kept', async () => {
      const small = await bench.volume('');
      const pid = await writerOn(small);
      const cut = backend.stageTogether(cutsOf(small, slow), { pids: [pid], deadlineMs: 60 }, soon());
      await failsWith(cut, 'unavailable', /60 ms.* of 2 images/);
      await goesOn(small, pid);
      expect(await bench.temporaries()).toEqual([]);
    });

    it('need a writer that is there and runs', async () => {
      const image = await bench.volume('');
      const gone = run('counter-writer', backend.pathOf(image));
      await kill(gone);
      const pause = { pids: [gone.pid!], deadlineMs: 2_000 };
      await failsWith(backend.stageTogether(cutsOf(image), pause, soon()), 'unavailable', /gone/);
      const pid = await writerOn(image);
      process.kill(pid, 'SIGSTOP');
      await until('the writer is stopped', () => isStopped(pid));
      const stopped = { pids: [pid], deadlineMs: 2_000 };
      await failsWith(backend.stageTogether(cutsOf(image), stopped, soon()), 'unavailable', /stopped already/);
      expect(await bench.temporaries()).toEqual([]);
    });

    it('are none when somebody lets the writer go on in between', async () => {
      const [first, second] = [await bench.volume(''), await bench.volume('')];
      const pid = await writerOn(first);
      const copies = holdCopies();
      const cut = backend.stageTogether(cutsOf(first, second), { pids: [pid], deadlineMs: 30_000 }, soon());
      const failure = failsWith(cut, 'unavailable', /ran while/);
      await until('the watchdog has stopped the writer and copies', copies.reached);
      process.kill(pid, 'SIGCONT');
      await goesOn(first, pid);
      process.kill(pid, 'SIGSTOP');
      await until('the writer is stopped again', () => isStopped(pid));
      copies.release();
      await failure;
      await goesOn(first, pid);
      expect(await bench.temporaries()).toEqual([]);
    });

    it.each(['the worker is killed', 'the watchdog is killed'])('let the writer go on when %s', async what => {
      const small = await bench.volume('');
      const pid = await writerOn(small);
      const cuts = cutsOf(small, slow);
      const pause = { pids: [pid], deadlineMs: 30_000 };
      const request = { pools: [pool('pool', join(folder, 'pool'))], owner: OWNER, cuts, pause };
      const parent = run('cut-parent', JSON.stringify(request));
      await until('the writer is stopped', () => isStopped(pid));
      const watchdog = watchdogOf(parent.pid!)!;
      if (what === 'the worker is killed') await kill(parent);
      else process.kill(watchdog, 'SIGKILL');
      await goesOn(small, pid);
      await until('the watchdog has ended', () => identityOf(watchdog) === undefined);
      await kill(parent);
      for (const { image } of cuts) {
        expect(await backend.inspectImage(image, soon())).toEqual({ state: 'absent' });
        await backend.discardStages(image, bench.nextFence(), soon());
      }
      expect(await bench.temporaries()).toEqual([]);
    });

    it('end with timeout when the signal fires, and the writer goes on', async () => {
      const small = await bench.volume('');
      const pid = await writerOn(small);
      const abort = new AbortController();
      const cut = backend.stageTogether(
        cutsOf(small, slow),
        { pids: [pid], deadlineMs: 30_000 },
        unleased(abort.signal),
      );
      const failure = failsWith(cut, 'timeout');
      await until('the writer is stopped', () => isStopped(pid));
      abort.abort();
      await failure;
      await goesOn(small, pid);
      await until('nothing is left', async () => (await bench.temporaries()).length === 0);
    });
  });
}
