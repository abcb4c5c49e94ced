import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { chmod, open, rename } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { ImageRef, StageRef } from '#backends/block-backend';
import { identityOf, isSame, type ProcessIdentity } from '#backends/linux/process-state';
import type { CutCopy, CutOrders, CutReport } from '#backends/reflink/cut-orders';
import { fileError } from '#backends/reflink/file-errors';
import { imagePath, stagedPath, writingPath } from '#backends/reflink/layout';
import type { PoolRoot } from '#backends/reflink/pool-root';
import { openImage, removeStages } from '#backends/reflink/staging';
import { StorageError } from '#platform/errors';
import { PACKAGE_ROOT } from '#platform/package-root';

const WATCHDOG = join(PACKAGE_ROOT, 'dist', 'libs', 'backends', 'src', 'reflink', 'cut-watchdog.js');
/** Its own clock is the deadline; this one is for a watchdog that does not even tick. */
const MARGIN_MS = 5_000;
/** In the watchdog, descriptors begin after stdin, stdout and stderr. */
const FIRST_FD = 3;

interface Cut {
  stage: StageRef;
  source: ImageRef;
}

interface Pause {
  pids: readonly number[];
  deadlineMs: number;
}

/**
 * Stages several images as of one instant (invariant F4). The pause belongs to a process of its own, the watchdog; this
 * one gives the orders, and afterwards makes the results durable.
 */
export async function cutTogether(
  cuts: readonly Cut[],
  roots: ReadonlyMap<string, PoolRoot>,
  pause: Pause,
  signal: AbortSignal,
): Promise<{ pausedMs: number }> {
  const rootOf = (pool: string): PoolRoot => roots.get(pool)!;
  const order = [...roots.values()];
  const inWatchdog = (root: PoolRoot, path: string): string =>
    join(`/proc/self/fd/${FIRST_FD + order.indexOf(root)}`, relative(root.path, path));

  const targets: { stage: StageRef; root: PoolRoot; path: string }[] = [];
  const copies: CutCopy[] = [];
  try {
    for (const { stage, source } of cuts) {
      const from = rootOf(source.pool);
      const root = rootOf(stage.pool);
      await removeStages(root, stage.imageId, stage.fence);
      const path = writingPath(root.path, stage);
      targets.push({ stage, root, path });
      copies.push({
        source: inWatchdog(from, imagePath(from.path, source)),
        target: inWatchdog(root, path),
        inode: await inodeOf(from, source),
        how: root.clone === 'reflink' ? 'clone' : 'copy',
      });
    }
    const writers = pause.pids.map(identify);
    const report = await runWatchdog(
      { writers, deadlineMs: pause.deadlineMs, copies },
      order.map(root => root.fd),
      signal,
    );
    if (report.result !== 'done') throw failure(report, cuts.length, pause);
    for (const { stage, root, path } of targets) await complete(path, stagedPath(root.path, stage));
    return { pausedMs: report.pausedMs };
  } catch (error) {
    for (const { stage, root } of targets) await removeStages(root, stage.imageId, stage.fence);
    throw error;
  }
}

async function inodeOf(root: PoolRoot, image: ImageRef): Promise<string> {
  const file = await openImage(root, image, constants.O_RDONLY);
  try {
    return (await file.stat({ bigint: true })).ino.toString();
  } finally {
    await file.close();
  }
}

function identify(pid: number): ProcessIdentity {
  const identity = identityOf(pid);
  if (identity) return identity;
  throw new StorageError('unavailable', `process ${pid}, which was to be paused for the cut, is gone`);
}

async function complete(path: string, staged: string): Promise<void> {
  await chmod(path, 0o600);
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(path, staged);
}

function failure(report: Exclude<CutReport, { result: 'done' }>, images: number, pause: Pause): StorageError {
  const after = `after ${report.pausedMs} ms`;
  switch (report.result) {
    case 'deadline':
      return new StorageError(
        'unavailable',
        `the writers may be stopped for ${pause.deadlineMs} ms; ${report.copied} of ${images} images were cut ${after}, all are discarded`,
        // Each attempt stops the writers for that long; whoever wants another one asks again.
        { retry: 'never' },
      );
    case 'unavailable':
      return new StorageError('unavailable', `cut of ${images} images, ${after}: ${report.message}`);
    case 'error': {
      const cause = Object.assign(new Error(report.message), { code: report.code });
      return fileError(cause, `cut of ${images} images, ${after}`);
    }
  }
}

/** Its answer. However it ends, the writers run again. */
async function runWatchdog(orders: CutOrders, fds: readonly number[], signal: AbortSignal): Promise<CutReport> {
  const child = spawn(process.execPath, [WATCHDOG], {
    // A session of its own: a signal to our group is not for it. Nothing secret is in its environment or arguments.
    detached: true,
    env: { NODE_NO_WARNINGS: '1' },
    cwd: '/',
    stdio: ['pipe', 'pipe', 'ignore', ...fds],
  });
  const abandon = () => child.stdin!.destroy();
  signal.addEventListener('abort', abandon, { once: true });
  const guard =
    orders.writers.length > 0 ? setTimeout(() => child.kill('SIGKILL'), orders.deadlineMs + MARGIN_MS) : undefined;
  try {
    if (signal.aborted) abandon();
    const text = await outputOf(child, `${JSON.stringify(orders)}\n`);
    if (text.endsWith('\n')) return JSON.parse(text);
    // Killed before it could let them go on.
    for (const writer of orders.writers) if (isSame(writer)) process.kill(writer.pid, 'SIGCONT');
    return { result: 'unavailable', message: 'the watchdog of the cut was killed', pausedMs: 0 };
  } finally {
    clearTimeout(guard);
    signal.removeEventListener('abort', abandon);
  }
}

function outputOf(child: ChildProcess, input: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.stdout!.setEncoding('utf8').on('data', chunk => {
      text += chunk;
    });
    child.once('error', error => reject(new StorageError('unavailable', `no watchdog for the cut: ${error.message}`)));
    child.once('close', () => resolve(text));
    // It may be gone already; then its answer says so.
    child.stdin!.on('error', () => {});
    child.stdin!.write(input);
  });
}
