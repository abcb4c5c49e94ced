/**
 * The process that owns the pause of a cut (invariant F4). It stops the writers, makes the copies, and lets the writers
 * go on: after success, after any error, at the deadline, and when the one who gave the orders is gone, which it sees by
 * the end of its stdin. It does nothing else, so nothing else can keep it from that; its event loop stays free.
 *
 * The copies are as of one instant only if nobody ran in between. Being stopped at both ends does not prove that: another
 * SIGCONT may have come and gone. So the scheduler's own counts of every thread are compared.
 *
 * It ends itself by SIGKILL where a clone may still run: only that interrupts one.
 */
import { constants, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { isSame, type ProcessIdentity, threadsOf } from '#backends/linux/process-state';
import type { CutCopy, CutOrders, CutReport } from '#backends/reflink/cut-orders';
import { cloneFile, copyData, SourceChanged } from '#backends/reflink/file-content';

const STDOUT = 1;
const POLL_MS = 1;

class NotStopped extends Error {}

let stopped: ProcessIdentity[] = [];
let stoppedAt = 0;
let copied = 0;

function resume(): number {
  for (const writer of stopped) {
    try {
      if (isSame(writer)) process.kill(writer.pid, 'SIGCONT');
    } catch {
      // It ended between the two.
    }
  }
  stopped = [];
  const pausedMs = stoppedAt === 0 ? 0 : performance.now() - stoppedAt;
  stoppedAt = 0;
  return Math.round(pausedMs * 10) / 10;
}

function end(report: (pausedMs: number) => CutReport): never {
  const pausedMs = resume();
  try {
    writeSync(STDOUT, `${JSON.stringify(report(pausedMs))}\n`);
  } catch {
    // Nobody listens any more.
  }
  process.kill(process.pid, 'SIGKILL');
  throw new Error('unreachable');
}

const describe = (writers: readonly ProcessIdentity[]): string => writers.map(({ pid }) => pid).join(', ');

async function stop(writers: readonly ProcessIdentity[]): Promise<void> {
  stoppedAt = performance.now();
  for (const writer of writers) {
    if (!isSame(writer)) throw new NotStopped(`process ${writer.pid} is gone`);
    const states = [...threadsOf(writer.pid).values()].map(({ state }) => state);
    // Somebody else pauses it, and will let it go on in the middle of our cut; or it was left so, and nobody will.
    if (states.every(state => state === 'T')) throw new NotStopped(`process ${writer.pid} is stopped already`);
    stopped.push(writer);
    process.kill(writer.pid, 'SIGSTOP');
  }
  // A thread inside a system call stops when that returns.
  while (!stopped.every(isAllStopped)) await delay(POLL_MS);
}

const isAllStopped = ({ pid }: ProcessIdentity): boolean => {
  const threads = threadsOf(pid);
  if (threads.size === 0) throw new NotStopped(`process ${pid} is gone`);
  return [...threads.values()].every(({ state }) => state === 'T');
};

/** Equal before and after: no thread of any writer ran, began or ended. */
const trace = (writers: readonly ProcessIdentity[]): string =>
  JSON.stringify(writers.map(writer => [isSame(writer), [...threadsOf(writer.pid)]]));

async function openSource({ source, inode }: CutCopy) {
  const file = await open(source, constants.O_RDONLY | constants.O_NOFOLLOW);
  if ((await file.stat({ bigint: true })).ino.toString() === inode) return file;
  await file.close();
  throw Object.assign(new Error('the source is another file now'), { code: 'ENOENT' });
}

type OpenSource = Awaited<ReturnType<typeof openSource>>;

async function copy(source: OpenSource, { target, how }: CutCopy, signal: AbortSignal): Promise<void> {
  if (how === 'clone') await cloneFile(`/proc/self/fd/${source.fd}`, target);
  else {
    const file = await open(target, 'wx', 0o600);
    try {
      await copyData(source, file, signal);
    } finally {
      await file.close();
    }
  }
  copied += 1;
}

async function cut({ writers, deadlineMs, copies }: CutOrders): Promise<void> {
  const sources = await Promise.all(copies.map(openSource));
  // As little as possible is left to be flushed while the writers wait.
  for (const source of sources) await source.datasync();
  if (writers.length > 0) {
    setTimeout(() => end(pausedMs => ({ result: 'deadline', copied, pausedMs })), deadlineMs);
    await stop(writers);
  }
  const before = trace(stopped);
  const never = new AbortController().signal;
  await Promise.all(copies.map((one, n) => copy(sources[n]!, one, never)));
  if (trace(stopped) !== before)
    throw new NotStopped(`a thread of process ${describe(writers)} ran while its volumes were copied`);
}

async function readOrders(): Promise<CutOrders> {
  let text = '';
  for await (const chunk of process.stdin.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    if (text.includes('\n')) return JSON.parse(text);
  }
  throw new Error('no orders');
}

const orders = await readOrders();
const abandoned = () => end(pausedMs => ({ result: 'error', message: 'abandoned', pausedMs }));
for (const event of ['end', 'close', 'error']) process.stdin.once(event, abandoned);
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(name, abandoned);
process.stdin.resume();
try {
  await cut(orders);
  end(pausedMs => ({ result: 'done', pausedMs }));
} catch (error) {
  const { message, code } = error as NodeJS.ErrnoException;
  if (error instanceof SourceChanged) {
    const who = orders.writers.length > 0 ? `a thread of process ${describe(orders.writers)} ran` : 'somebody wrote';
    end(pausedMs => ({ result: 'unavailable', message: `${who} while the data were copied`, pausedMs }));
  }
  if (error instanceof NotStopped) end(pausedMs => ({ result: 'unavailable', message, pausedMs }));
  end(pausedMs => ({ result: 'error', code, message, pausedMs }));
}
