import { existsSync, readFileSync } from 'node:fs';
import { Home, LauncherError, writeWhole } from './home.js';
import { jsonIn } from './json-in.js';
import type { MovedPort } from './ports.js';
import { isAlive, type ProcessId } from './processes/process.js';
import type { ProcessState } from './processes/supervised-process.js';

export type HomeState = 'starting' | 'ready' | 'stopping' | 'stopped' | 'failed';

/** A part that does not run here, why, and what would change that. */
export interface Skipped {
  part: string;
  reason: string;
  remedy: string;
}

export interface ProcessRow {
  name: string;
  pid: number | null;
  startTime: string | null;
  restarts: number;
  state: ProcessState;
  reason?: string;
}

/** What the supervisor leaves for the other commands; the doors are in `env`. */
export interface State {
  state: HomeState;
  version: string;
  partsOnly: boolean;
  supervisor: ProcessId;
  startedAt: string;
  processes: ProcessRow[];
  skipped: Skipped[];
  /** Ports that are not those of the last start. */
  moved?: MovedPort[];
  /** Settings of gateway and worker, without those that are secret. */
  env: Record<string, string>;
  /** Data kept outside the home, when PostgreSQL's user cannot reach it. */
  dataOutside?: string;
  failure?: string;
}

export function readState(home: Home): State | undefined {
  return existsSync(home.stateFile) ? jsonIn(readFileSync(home.stateFile, 'utf8')) : undefined;
}

export function writeState(home: Home, state: State): void {
  writeWhole(home.stateFile, `${JSON.stringify(state, null, 2)}\n`);
}

/** Of an appliance that serves. `or`: what helps else. */
export function requireReady(home: Home | undefined, or: string): { home: Home; state: State } {
  const state = home && livingState(home);
  if (home && state?.state === 'ready') return { home, state };
  throw new LauncherError(
    state === undefined
      ? `nothing runs at ${Home.locate()}: ./trivet up --detach, or ${or}`
      : `the appliance at ${Home.locate()} is ${state.state}, not ready; ./trivet status says more`,
  );
}

/** The state of a supervisor that lives; undefined when none does, whatever the file says. */
export function livingState(home: Home): State | undefined {
  const state = readState(home);
  return state !== undefined && isAlive(state.supervisor) ? state : undefined;
}
