import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { EXIT_CONFIG } from '#platform/config/config';
import { strangerAt } from './listeners.js';
import { explainEnd, rotateClosed } from './log-file.js';
import { endProcess, identify, type ProcessId, signal } from './process.js';

export interface ProcessSpec {
  name: string;
  command: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  cwd: string;
  uid?: number;
  gid?: number;
  logFile: string;
  stopSignal: NodeJS.Signals;
  /** After that long a stop becomes SIGKILL. */
  stopGraceMs: number;
  /** A start that is not ready after that long has failed. */
  readyMs: number;
  /** Polled after the start; must not throw. @param pid of the process that was started */
  ready(pid: number): Promise<boolean>;
  /** Runs before each start, e.g. to clear what a killed predecessor left. */
  beforeStart?(): Promise<void>;
  /** Ports of 127.0.0.1 that it is to open: a start that finds somebody else there has failed at once. */
  ports?: readonly number[];
}

export type ProcessState = 'starting' | 'running' | 'waiting' | 'failed' | 'stopped';

interface StartFailure {
  message: string;
  /** A repeat is pointless. */
  final: boolean;
  exitCode?: number;
  /** Somebody else has it. */
  takenPort?: number;
}

interface End {
  code: number | null;
  signal: string | null;
}

/** A start that cannot succeed by repeating it. */
export class StartError extends Error {
  constructor(
    message: string,
    /** What the launcher ends with: a wrong configuration keeps its own code. */
    readonly exitCode = 1,
    /** At another port it could. */
    readonly takenPort?: number,
  ) {
    super(message);
  }
}

export interface BackOff {
  firstMs: number;
  maxMs: number;
}
const BACK_OFF: BackOff = { firstMs: 250, maxMs: 30_000 };
/** One that was ready for so many times its last pause begins with firstMs again: what is killed now and then is mostly there. */
const CALM = 4;

/** The pause before the next start. @param readyMs how long it was ready, 0 for a start that failed */
export function pauseAfter(pause: number, readyMs: number, { firstMs, maxMs }: BackOff): number {
  return readyMs >= CALM * pause ? firstMs : Math.min(pause * 2, maxMs);
}

const READY_POLL_MS = 50;
const PORTS_POLL_MS = 1_000;
const FIRST_START_ATTEMPTS = 3;

/** One child process, started again with back-off whenever it ends unasked. */
export class SupervisedProcess {
  state: ProcessState = 'stopped';
  restarts = 0;
  /** Why it does not run, in a line. */
  reason: string | undefined;

  #child: ChildProcess | undefined;
  #id: ProcessId | undefined;
  #exit: Promise<End> | undefined;
  #stopping = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(
    readonly spec: ProcessSpec,
    private readonly changed: () => void = () => {},
    private readonly backOff: BackOff = BACK_OFF,
  ) {}

  get id(): ProcessId | undefined {
    return this.#id;
  }

  /** Resolves when it is ready; from then on it is kept running. Throws StartError, with the end of its log. */
  async start(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const failure = await this.#startOnce();
      if (failure === undefined) break;
      const pointless = failure.final || failure.takenPort !== undefined;
      if (this.#stopping.signal.aborted || pointless || attempt === FIRST_START_ATTEMPTS) {
        this.#setState(this.#stopping.signal.aborted ? 'stopped' : 'failed', failure.message);
        throw new StartError(failure.message, failure.exitCode, failure.takenPort);
      }
      await delay(CALM * this.backOff.firstMs, undefined, { signal: this.#stopping.signal }).catch(() => {});
    }
    this.#loop = this.#keepRunning();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#id !== undefined) await endProcess(this.#id, this.spec.stopSignal, this.spec.stopGraceMs);
    await this.#exit;
    await this.#loop;
    this.#setState('stopped');
  }

  signal(name: NodeJS.Signals): void {
    if (this.#id !== undefined) signal(this.#id, name);
  }

  async #keepRunning(): Promise<void> {
    // Of a first fall, whenever it comes.
    let pause = 0;
    let failure: StartFailure | undefined;
    while (!this.#stopping.signal.aborted) {
      const since = Date.now();
      const end = await this.#exit;
      this.#id = undefined;
      if (this.#stopping.signal.aborted) return;
      if (end?.code === EXIT_CONFIG && failure?.takenPort === undefined) {
        this.#setState('failed', this.#describe(end));
        return;
      }
      pause = pauseAfter(pause, failure === undefined ? Date.now() - since : 0, this.backOff);
      this.#setState('waiting', failure?.message ?? (end === undefined ? undefined : this.#describe(end)));
      await delay(pause, undefined, { signal: this.#stopping.signal }).catch(() => {});
      if (this.#stopping.signal.aborted) return;
      this.restarts++;
      failure = await this.#startOnce();
      if (failure?.final) {
        this.#setState('failed', failure.message);
        return;
      }
    }
  }

  /** Undefined when ready; otherwise why not, and whether a repeat is pointless. */
  async #startOnce(): Promise<StartFailure | undefined> {
    const { spec } = this;
    this.#setState('starting');
    try {
      await spec.beforeStart?.();
    } catch (error) {
      return { message: `${spec.name}: ${(error as Error).message}`, final: false };
    }
    if (this.#stopping.signal.aborted) return { message: `${spec.name}: stopped`, final: true };
    const logStart = this.#spawn();
    const exit = this.#exit as Promise<End>;
    let ended: End | undefined;
    void exit.then(end => {
      ended = end;
    });
    const deadline = Date.now() + spec.readyMs;
    let portsAt = Date.now() + PORTS_POLL_MS;
    while (ended === undefined && !this.#stopping.signal.aborted) {
      if (this.#child?.pid !== undefined && (await spec.ready(this.#child.pid))) {
        this.#setState('running');
        return undefined;
      }
      if (Date.now() > deadline) {
        if (this.#id !== undefined) await endProcess(this.#id, spec.stopSignal, spec.stopGraceMs);
        await exit;
        return {
          message: explainEnd(`${spec.name}: not ready after ${spec.readyMs / 1000} s`, null, spec.logFile, logStart),
          final: false,
        };
      }
      if (Date.now() > portsAt) {
        const taken = this.#takenPort();
        if (taken !== undefined) {
          if (this.#id !== undefined) await endProcess(this.#id, spec.stopSignal, spec.stopGraceMs);
          await exit;
          return { ...taken, final: false };
        }
        portsAt = Date.now() + PORTS_POLL_MS;
      }
      await Promise.race([delay(READY_POLL_MS), exit]);
    }
    if (ended === undefined) return { message: `${spec.name}: stopped`, final: true };
    this.#id = undefined;
    const taken = this.#takenPort();
    // Whatever it calls that itself: a program may take it for a wrong configuration.
    if (taken !== undefined) return { ...taken, final: false };
    const message = explainEnd(this.#describe(ended), ended.code, spec.logFile, logStart);
    return ended.code === EXIT_CONFIG ? { message, final: true, exitCode: EXIT_CONFIG } : { message, final: false };
  }

  #takenPort(): { message: string; takenPort: number } | undefined {
    for (const port of this.spec.ports ?? []) {
      const stranger = strangerAt(this.#id?.pid, port);
      if (stranger !== undefined)
        return { message: `${this.spec.name}: port ${port} is taken by ${stranger}`, takenPort: port };
    }
    return undefined;
  }

  /** Returns where this run's lines begin in the log. */
  #spawn(): number {
    const { spec } = this;
    rotateClosed(spec.logFile);
    const logStart = existsSync(spec.logFile) ? statSync(spec.logFile).size : 0;
    const log = openSync(spec.logFile, 'a', 0o600);
    try {
      const child = spawn(spec.command, spec.args, {
        cwd: spec.cwd,
        env: { ...spec.env },
        uid: spec.uid,
        gid: spec.gid,
        // A session of its own: Ctrl-C in the terminal is for the supervisor alone, which stops the others in order.
        detached: true,
        stdio: ['ignore', log, log],
      });
      this.#child = child;
      this.#exit = new Promise(resolve => {
        child.once('exit', (code, sig) => resolve({ code, signal: sig }));
        child.once('error', error => resolve({ code: null, signal: `${(error as NodeJS.ErrnoException).code}` }));
      });
      this.#id = child.pid === undefined ? undefined : identify(child.pid);
    } finally {
      closeSync(log);
    }
    this.changed();
    return logStart;
  }

  #describe(end: End): string {
    if (this.#child?.pid === undefined) return `${this.spec.name}: cannot start ${this.spec.command} (${end.signal})`;
    const how = end.code === null ? `was ended by ${end.signal}` : `ended with code ${end.code}`;
    return `${this.spec.name}: ${how}`;
  }

  #setState(state: ProcessState, reason?: string): void {
    this.state = state;
    this.reason = reason;
    this.changed();
  }
}
