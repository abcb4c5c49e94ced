import { createLogger, type Logger } from '#platform/logging/log';

const EXIT_FAILURE = 1;
const SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

export interface ShutdownOptions {
  /** Milliseconds from the signal to a forced exit. */
  deadlineMs: number;
  /** Called at once when stopping begins, before the first step. */
  onBegin?: () => void;
  log?: Logger;
  exit?: (code: number) => void;
}

interface Step {
  name: string;
  timeoutMs: number;
  run: (leftMs: number) => unknown;
}

/**
 * Stops a process in order. Steps run in the reverse of the order in which they were added, as parts depend on those
 * started before them. A step that fails or overruns its time is logged, and the next one runs: SIGKILL at any moment must be equally correct, so an orderly stop is a courtesy with a deadline.
 * Exit codes: 0 after a signal, 1 when the deadline forced it or a failure began it, 128 + signal on the second one.
 */
export class Shutdown {
  private readonly steps: Step[] = [];
  private readonly log: Logger;
  private readonly exit: (code: number) => void;
  private readonly handlers = new Map<string, (argument: unknown) => void>();
  private running: Promise<void> | undefined;

  constructor(private readonly options: ShutdownOptions) {
    this.log = options.log ?? createLogger('shutdown');
    this.exit = options.exit ?? (code => process.exit(code));
  }

  get stopping(): boolean {
    return this.running !== undefined;
  }

  /** Call it right after the part was started. Without `timeoutMs` the step may use what is left of the deadline; it is told how much. */
  add(name: string, run: (leftMs: number) => unknown, timeoutMs = this.options.deadlineMs): void {
    this.steps.push({ name, run, timeoutMs });
  }

  /** Takes SIGTERM, SIGINT, and what nobody caught. */
  listen(): void {
    for (const signal of Object.keys(SIGNALS) as (keyof typeof SIGNALS)[]) {
      this.on(signal, () => {
        if (this.stopping) {
          this.log.warn({ signal }, 'second signal: exit at once');
          this.exit(128 + SIGNALS[signal]);
        } else void this.stop(signal);
      });
    }
    this.on('uncaughtException', error => this.crash(error, 'uncaught exception'));
    this.on('unhandledRejection', error => this.crash(error, 'unhandled rejection'));
  }

  /** For tests: leaves the process as it was. */
  unlisten(): void {
    for (const [event, handler] of this.handlers) process.off(event, handler);
    this.handlers.clear();
  }

  /** Runs the steps once; everybody who calls gets the same promise. */
  stop(reason: string, exitCode = 0): Promise<void> {
    this.running ??= this.run(reason, exitCode);
    return this.running;
  }

  private on(event: string, handler: (argument: unknown) => void): void {
    process.on(event, handler);
    this.handlers.set(event, handler);
  }

  /** State in memory can no longer be trusted, so nothing is handed back: leases run out by themselves. */
  private crash(error: unknown, what: string): void {
    this.log.fatal({ err: error }, '%s: the process ends', what);
    this.exit(EXIT_FAILURE);
  }

  private async run(reason: string, exitCode: number): Promise<void> {
    const { deadlineMs } = this.options;
    const until = performance.now() + deadlineMs;
    this.options.onBegin?.();
    this.log.info({ reason, deadlineMs }, 'stopping');
    const force = setTimeout(() => {
      this.log.error({ deadlineMs }, 'stopping took too long: exit at once');
      this.exit(EXIT_FAILURE);
    }, deadlineMs);
    let isForced = false;
    for (const step of this.steps.reverse()) if ((await this.runStep(step, until)) === 'forced') isForced = true;
    clearTimeout(force);
    this.log.info('stopped');
    this.exit(isForced ? EXIT_FAILURE : exitCode);
  }

  /** `forced`: the deadline of all ended it, not its own time. */
  private async runStep({ name, run, timeoutMs }: Step, until: number): Promise<'forced' | undefined> {
    const allowed = Math.max(0, Math.min(timeoutMs, until - performance.now()));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>(resolve => {
      timer = setTimeout(resolve, allowed, 'late');
    });
    const started = performance.now();
    try {
      const ended = await Promise.race([Promise.resolve(allowed).then(run), late]);
      const ms = Math.round(performance.now() - started);
      if (ended !== 'late') this.log.debug({ step: name, ms }, 'stopped a part');
      else {
        this.log.warn({ step: name, ms }, 'a step of stopping took too long, going on');
        if (allowed < timeoutMs) return 'forced';
      }
    } catch (error) {
      this.log.warn({ step: name, err: error }, 'a step of stopping failed, going on');
    } finally {
      clearTimeout(timer);
    }
    return undefined;
  }
}
