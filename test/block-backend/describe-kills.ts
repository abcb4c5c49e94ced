import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fsyncSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { BlockBackend, ImageRef } from '#backends/block-backend';
import {
  BlockBackendBench,
  type BlockBackendHarness,
  failsWith,
  MIB,
} from '#backends/conformance/block-backend.conformance';
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import { isStorageError } from '#platform/errors';
import { unleased } from '#platform/lease-signal';
import { PACKAGE_ROOT } from '#platform/package-root';
import { OWNER, ownFolder, pool, readFrom, removeFolder, writeTo } from '#test/block-backend/file-harness';
import { until } from '#test/support/parts';

const SCRIPT = join(PACKAGE_ROOT, 'dist', 'test', 'block-backend', 'stage-child.js');
const soon = () => unleased(AbortSignal.timeout(60_000));

/** A worker dies while it makes an image (invariant F1), on a file system of either kind. */
export function describeKills(name: string, below: () => string | undefined): void {
  describe(`a worker that is killed while it copies: ${name}`, () => {
    let bench: BlockBackendBench;
    let backend: BlockBackend;
    let folder: string;
    let source: ImageRef;
    /** Where its data lie. */
    let count: number;
    let step: number;

    beforeAll(async () => {
      folder = ownFolder(below());
      const pools = [pool('pool', join(folder, 'pool'))];
      mkdirSync(pools[0]!.path);
      backend = new ReflinkBackend(pools, OWNER);
      const { clone } = await backend.preparePool('pool', soon());
      const harness = { backend, pool: 'pool', write: writeTo(backend), read: readFrom(backend) };
      bench = new BlockBackendBench(harness as Partial<BlockBackendHarness> as BlockBackendHarness);
      source = await bench.make({ kind: 'empty', sizeBytes: BigInt(2048 * MIB), thick: false });
      bench.made.pop();
      [count, step] = clone === 'copy' ? [700, MIB] : [40_000, 16_384];
      const block = Buffer.alloc(clone === 'copy' ? MIB : 4_096, 1);
      const fd = openSync(backend.pathOf(source), 'r+');
      for (let n = 0; n < count; n++) {
        block.writeUInt32LE(n + 1);
        writeSync(fd, block, 0, block.length, n * step);
      }
      fsyncSync(fd);
      closeSync(fd);
    });
    /** A call that was given up goes on until its next look at its signal; until then nobody else has the image. */
    const isClean = () =>
      bench.clean().then(
        () => true,
        (error: unknown) => {
          if (isStorageError(error) && error.kind === 'aborted') return false;
          throw error;
        },
      );
    afterEach(() => until('calls that were given up have returned', isClean));
    afterAll(() => removeFolder(folder, backend, ['pool']));

    function isWhole(image: ImageRef): boolean {
      const fd = openSync(backend.pathOf(image), 'r');
      const block = Buffer.alloc(4);
      try {
        for (let n = 0; n < count; n++) {
          readSync(fd, block, 0, 4, n * step);
          if (block.readUInt32LE() !== n + 1) return false;
        }
        return true;
      } finally {
        closeSync(fd);
      }
    }

    function start(image: ImageRef, options: { failpoint?: string; readOnly?: boolean } = {}) {
      const stage = bench.stageRef(image);
      const pools = [pool('pool', join(folder, 'pool'))];
      const request = JSON.stringify({ pools, owner: OWNER, stage, source, image, readOnly: false, ...options });
      const child = spawn(process.execPath, [SCRIPT, request], { stdio: 'ignore' });
      return { stage, child };
    }

    const ended = (child: ChildProcess): Promise<NodeJS.Signals | null> =>
      new Promise(resolve => {
        if (child.exitCode !== null || child.signalCode !== null) resolve(child.signalCode);
        else child.once('exit', (_, signal) => resolve(signal));
      });

    async function makeAgain(image: ImageRef, readOnly = false): Promise<void> {
      const stage = bench.stageRef(image);
      await backend.stage(stage, { kind: 'copy', source, thick: false }, soon());
      await backend.commit(stage, image, { readOnly }, soon());
    }

    it('in the middle leaves no image, and a repeat makes a whole one', async () => {
      const image = bench.image();
      const { child, stage } = start(image);
      await until('the copy is being made', async () => (await bench.temporaries()).length > 0);
      child.kill('SIGKILL');
      expect(await ended(child)).toBe('SIGKILL');
      const half = (await bench.listed()).find(({ kind }) => kind === 'temporary')!;
      expect(half.sizeBytes, 'the kill came in the middle').toBeLessThan(BigInt(2048 * MIB));
      expect(await backend.inspectImage(image, soon())).toEqual({ state: 'absent' });
      // Whatever a successor does first: half a copy is never named.
      await failsWith(backend.commit(stage, image, { readOnly: false }, soon()), 'failed_precondition', /staged/);
      await makeAgain(image);
      expect(isWhole(image)).toBe(true);
      expect(await bench.temporaries()).toEqual([]);
    });

    it.each([
      ['reflink.written', 'absent'],
      ['reflink.linked', 'present'],
    ])('at %s leaves it %s, and a repeat ends with one whole image', async (failpoint, state) => {
      const image = bench.image('snapshot');
      const { child, stage } = start(image, { failpoint: `${failpoint}=kill`, readOnly: true });
      expect(await ended(child)).toBe('SIGKILL');
      expect(await backend.inspectImage(image, soon())).toMatchObject({ state });
      expect(await bench.temporaries()).toEqual([image.id]);
      if (state === 'present') await backend.commit(stage, image, { readOnly: true }, soon());
      else await makeAgain(image, true);
      expect(await backend.inspectImage(image, soon())).toMatchObject({ state: 'present', readOnly: true });
      expect(isWhole(image)).toBe(true);
      expect(await bench.temporaries()).toEqual([]);
      await expect(bench.harness.write(image, 0, Buffer.from('x'))).rejects.toThrow();
    });

    it('and one that is too slow for its caller leaves nothing', async () => {
      const image = bench.image();
      const abort = new AbortController();
      const content = { kind: 'copy', source, thick: false } as const;
      const call = backend.stage(bench.stageRef(image), content, unleased(abort.signal));
      const failure = failsWith(call, 'timeout');
      await until('the copy is being made', async () => (await bench.temporaries()).length > 0);
      const begin = performance.now();
      abort.abort();
      await failure;
      expect(performance.now() - begin, 'it does not wait for the kernel').toBeLessThan(1_000);
      await until('nothing is left', async () => (await bench.temporaries()).length === 0);
    });
  });
}
