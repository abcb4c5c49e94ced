import { environment } from '../environment.js';
import type { Home } from '../home.js';
import type { Ports } from '../ports.js';
import type { ProcessSpec } from '../processes/supervised-process.js';
import type { Skipped } from '../state.js';
import { findProgram } from './command.js';

export interface PartContext {
  home: Home;
  ports: Ports;
  /** The mark that every process of the home carries. */
  mark: Readonly<Record<string, string>>;
  /** Nothing in it outlives the home: speed before durability. */
  throwAway: boolean;
  /** Whether anything may be brought onto this machine. */
  install: boolean;
  /** Says a line to whoever waits. */
  say(line: string): void;
  /** Starts a process and keeps it running; resolves when it is ready, throws StartError when it cannot be. */
  run(spec: ProcessSpec): Promise<void>;
  /** Notes that data lie in a folder outside the home. */
  keepOutside(folder: string): void;
  /** Aborted when the appliance is to stop while it starts. */
  signal: AbortSignal;
}

/** What check() found: what is not installed, or why it cannot run here at all. */
export interface Lack {
  reason: string;
  /** Debian packages that would help. Empty: nothing can be installed that helps. */
  packages: readonly string[];
  remedy: string;
}

/**
 * A real part that the launcher can start when no address for it is configured. start() may be called again after a
 * stop, a kill or half a first start; it finds what is there. Processes are stopped by the supervisor, last started
 * first.
 */
export interface Part {
  readonly name:
    | 'postgres'
    | 'redis'
    | 'rgw'
    | 'xfs'
    | 'btrfs'
    | 'tgt'
    | 'rbd'
    | 'libiscsi'
    | 'chromium'
    | 'debian'
    | 'ubuntu'
    | 'guest'
    | 'azurite'
    | 'moto'
    | 'helm'
    | 'docker';
  /** It begins when that one is ready, and is skipped without it. */
  readonly after?: Part['name'];
  /** It stands in, for trying out, where that part lacks what nobody installs, and has left no data in that folder of the home. */
  readonly insteadOf?: { part: Part['name']; folder: string };
  /** The setting which says that this part is somewhere else. */
  readonly addressVariable: string;
  /** Undefined: it can start. Changes nothing. */
  check(): Promise<Lack | undefined>;
  /** Prepares what is missing, starts, and resolves to the settings that lead to it. */
  start(context: PartContext): Promise<Record<string, string>>;
  /** Settings for a home without it. */
  readonly absent: Readonly<Record<string, string>> | ((home: Home) => Record<string, string>);
}

/** What is not there of these programs, and the packages that have them. `or`: what helps instead. */
export function lacking(
  programs: readonly string[],
  packages: readonly string[],
  without: string,
  or?: string,
): Lack | undefined {
  const missing = programs.filter(name => findProgram(name) === undefined);
  if (missing.length === 0) return undefined;
  return {
    reason: `${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} not installed; ${without}`,
    packages,
    remedy: [`apt-get install ${packages.join(' ')}`, ...(or === undefined ? [] : [`or ${or}`])].join(', '),
  };
}

/** What costs minutes is there for those runs alone that name it. */
export const isAskedFor = (name: Part['name']): boolean => (environment.TRIVET_REQUIRE ?? '').split(',').includes(name);

/** What only tests use, which start it themselves. */
export const forTests = (name: Part['name'], check: () => Lack | undefined): Part => ({
  name,
  // There is nothing to point to.
  addressVariable: '',
  absent: {},
  check: async () => check(),
  start: async () => ({}),
});

export const skip = (part: string, lack: Lack): Skipped => ({ part, reason: lack.reason, remedy: lack.remedy });
