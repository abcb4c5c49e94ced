import { StorageError } from '#platform/errors';
import { readyCheck } from '#platform/metrics/metrics';

/** A probe that asks every second must not pile up behind a database that hangs. */
const CHECK_TIMEOUT_MS = 2_000;

export type CheckState = { state: 'ok' | 'failed'; reason?: string };

export interface Readiness {
  ready: boolean;
  /** starting: not every part is up yet. stopping: going away, send nothing more. */
  state: 'starting' | 'ready' | 'not_ready' | 'stopping';
  checks: Record<string, CheckState>;
}

type Phase = 'starting' | 'running' | 'stopping';

interface Answers {
  /** When the checks were asked. */
  asked: Phase;
  checks: Record<string, CheckState>;
}

/** Rejects, or returns a reason, when the part cannot serve. */
export type Check = (signal: AbortSignal) => Promise<string | undefined> | string | undefined;

/** Texts for anybody who can reach the port: what is wrong, never an address, a user or a driver's own words. */
function reasonOf(error: unknown): string {
  if (error instanceof StorageError) return error.message;
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]+$/.test(code) ? code : 'failed';
}

async function bounded(check: Check, timeoutMs: number): Promise<CheckState> {
  const signal = AbortSignal.timeout(timeoutMs);
  const late = new Promise<string>(resolve => {
    signal.addEventListener('abort', () => resolve(`no answer within ${timeoutMs} ms`), { once: true });
  });
  try {
    const reason = await Promise.race([check(signal), late]);
    return reason === undefined ? { state: 'ok' } : { state: 'failed', reason };
  } catch (error) {
    return { state: 'failed', reason: reasonOf(error) };
  }
}

/**
 * Liveness is the process; readiness is what the role needs to do its work, and never Redis alone, because without it
 * everything still works. Checks run at once, bounded, and callers that come meanwhile share the answer.
 */
export class Health {
  private readonly checks = new Map<string, { check: Check; isRequired: boolean }>();
  private readonly followers: ((ready: boolean) => void)[] = [];
  private phase: Phase = 'starting';
  private asking: Promise<Answers> | undefined;

  constructor(private readonly checkTimeoutMs = CHECK_TIMEOUT_MS) {}

  /** @param isRequired false: what it says is shown, and readiness does not depend on it */
  addCheck(name: string, check: Check, { isRequired = true } = {}): void {
    if (this.checks.has(name)) throw new Error(`two readiness checks named ${name}`);
    this.checks.set(name, { check, isRequired });
  }

  /** Is told each answer before whoever asked: nothing else that speaks of readiness lags behind what was said. */
  follow(hear: (ready: boolean) => void): void {
    this.followers.push(hear);
  }

  /** Everything was started. */
  setStarted(): void {
    if (this.phase === 'starting') this.phase = 'running';
  }

  setStopping(): void {
    this.phase = 'stopping';
  }

  async readiness(): Promise<Readiness> {
    this.asking ??= this.runChecks().finally(() => {
      this.asking = undefined;
    });
    const { asked, checks } = await this.asking;
    const passed = Object.entries(checks).every(
      ([name, { state }]) => state === 'ok' || !this.checks.get(name)!.isRequired,
    );
    // Checks that were added after the question have not answered it.
    const phase = asked === 'starting' && this.phase === 'running' ? asked : this.phase;
    const state = phase === 'running' ? (passed ? 'ready' : 'not_ready') : phase;
    const ready = state === 'ready';
    for (const hear of this.followers) hear(ready);
    return { ready, state, checks };
  }

  private async runChecks(): Promise<Answers> {
    const asked = this.phase;
    const entries = [...this.checks].map(async ([name, { check }]): Promise<[string, CheckState]> => {
      const result = await bounded(check, this.checkTimeoutMs);
      readyCheck.set({ check: name }, result.state === 'ok' ? 1 : 0);
      return [name, result];
    });
    return { asked, checks: Object.fromEntries(await Promise.all(entries)) };
  }
}
