/** The child that talks to a cluster (ceph-child.ts), as its parent sees it: started when it is needed, replaced when it is gone. */
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import type { CephMethods } from '#backends/rbd/ceph-methods';
import { PACKAGE_ROOT } from '#platform/package-root';

const CHILD = join(PACKAGE_ROOT, 'dist', 'libs', 'backends', 'src', 'rbd', 'ceph-child.js');
/** Threads for calls, which are mostly waits for the cluster. */
const THREADS = 16;
/** A call that nobody waits for any more and that has not come back since: the process is hung. */
const HUNG_MS = 60_000;
/** Of a call that only reads. What aborts librbd each time is not worth more children. */
const REPEATS = 2;

export type CephMethod = keyof CephMethods;
export interface CephOrder {
  id: number;
  method: CephMethod;
  args: readonly unknown[];
}
export interface CephFailure {
  message: string;
  code?: string;
  syscall?: string;
}
export type CephAnswer = { id: number; result?: unknown; error?: CephFailure };

const OF_NO_POOL: ReadonlySet<CephMethod> = new Set(['connect', 'command', 'identity', 'barrier']);
const ENDED = 'the process that talks to the cluster ended';

/** The child ended while the call was under way: its effect is unknown. */
export class CephGone extends Error {}
/** What the cluster, or its library, answered. */
export class CephError extends Error {
  readonly code: string;
  readonly syscall: string;

  /** @param cephPool the pool that was asked, where it was one */
  constructor(
    { message, code = 'EIO', syscall = '' }: CephFailure,
    readonly cephPool?: string,
  ) {
    super(message);
    this.code = code;
    this.syscall = syscall;
  }

  /** There was no connection to do anything by. */
  get isConnecting(): boolean {
    return this.code === 'ELIBACC' || this.syscall === 'rados_connect' || this.syscall.startsWith('rados_conf_set');
  }
}

export interface CephIdentity {
  user: string;
  key: string;
  monitors: readonly string[];
}

interface Waiting {
  cephPool: string | undefined;
  resolve(result: unknown): void;
  reject(error: Error): void;
}

interface Child {
  process: ChildProcess;
  waiting: Map<number, Waiting>;
  connected: Promise<string>;
}

export class CephProcess {
  #child: Child | undefined;
  #lastId = 0;

  /** @param onlyReads so a call that its child did not outlive is made again by the next one */
  constructor(
    private readonly identity: CephIdentity,
    private readonly onlyReads = false,
  ) {}

  /** `signal` ends the wait; the call itself cannot be called back. */
  async call<M extends CephMethod>(
    signal: AbortSignal,
    method: M,
    ...args: Parameters<CephMethods[M]>
  ): Promise<Awaited<ReturnType<CephMethods[M]>>> {
    for (let again = this.onlyReads ? REPEATS : 0; ; again--)
      try {
        return await this.#once(signal, method, args);
      } catch (error) {
        if (!(error instanceof CephGone) || again === 0) throw error;
      }
  }

  async #once<M extends CephMethod>(
    signal: AbortSignal,
    method: M,
    args: Parameters<CephMethods[M]>,
  ): Promise<Awaited<ReturnType<CephMethods[M]>>> {
    signal.throwIfAborted();
    const child = this.#running();
    await unless(signal, child.connected);
    const answer = this.#send(child, method, args);
    return (await unless(signal, answer, () => this.#watch(child, answer))) as Awaited<ReturnType<CephMethods[M]>>;
  }

  /** Its process, for tests. */
  get pid(): number | undefined {
    return this.#child?.process.pid;
  }

  close(): void {
    this.#leave(this.#child);
  }

  #running(): Child {
    if (this.#child) return this.#child;
    const process_ = fork(CHILD, [], {
      // Nothing secret is in its environment or arguments.
      env: { NODE_NO_WARNINGS: '1', UV_THREADPOOL_SIZE: `${THREADS}` },
      execArgv: ['--max-old-space-size=128'],
      cwd: '/',
      detached: true,
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const child: Child = { process: process_, waiting: new Map(), connected: Promise.resolve('') };
    this.#child = child;
    process_.on('message', (answer: CephAnswer) => {
      const waiting = child.waiting.get(answer.id);
      child.waiting.delete(answer.id);
      if (child.waiting.size === 0) rest(child);
      if (answer.error) waiting?.reject(new CephError(answer.error, waiting.cephPool));
      else waiting?.resolve(answer.result);
    });
    const gone = (how: unknown) => {
      if (this.#child === child) this.#child = undefined;
      for (const { reject } of child.waiting.values()) reject(new CephGone(ENDED, { cause: how }));
      child.waiting.clear();
    };
    process_.once('exit', (code, signal) => gone(new Error(`ended by ${signal ?? `status ${code}`}`)));
    process_.once('error', gone);
    const { user, key, monitors } = this.identity;
    child.connected = this.#send(child, 'connect', [
      user,
      { ...OPTIONS, key, mon_host: monitors.join(',') },
    ]) as Promise<string>;
    // A cluster that was out of reach is asked anew, by a child that has not given up.
    child.connected.catch(() => this.#leave(child));
    return child;
  }

  #send(child: Child, method: CephMethod, args: readonly unknown[]): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    const cephPool = OF_NO_POOL.has(method) ? undefined : (args[0] as string);
    return new Promise((resolve, reject) => {
      child.waiting.set(id, { cephPool, resolve, reject });
      child.process.ref();
      child.process.channel?.ref();
      child.process.send({ id, method, args } satisfies CephOrder, error => {
        if (!error) return;
        child.waiting.delete(id);
        this.#leave(child);
        reject(new CephGone(ENDED, { cause: error }));
      });
    });
  }

  /** Nobody waits for this answer any more. */
  #watch(child: Child, answer: Promise<unknown>): void {
    const timer = setTimeout(() => this.#leave(child), HUNG_MS);
    timer.unref();
    answer.catch(() => {}).finally(() => clearTimeout(timer));
  }

  #leave(child: Child | undefined): void {
    if (!child) return;
    if (this.#child === child) this.#child = undefined;
    child.process.kill('SIGKILL');
  }
}

/** A process with nothing to do keeps nobody alive. */
function rest({ process: child }: Child): void {
  child.unref();
  child.channel?.unref();
}

/**
 * Bounds of the library's own: requests that no monitor or disk answers end, and so do threads. What it logs would go to
 * nobody.
 */
const OPTIONS = {
  client_mount_timeout: '10',
  rados_mon_op_timeout: '15',
  rados_osd_op_timeout: '30',
  rbd_cache: 'false',
  rbd_default_clone_format: '2',
  log_to_stderr: 'false',
  err_to_stderr: 'false',
  log_file: '/dev/null',
  admin_socket: '',
} as const;

function unless<T>(signal: AbortSignal, work: Promise<T>, abandoned = () => {}): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      abandoned();
      reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}
