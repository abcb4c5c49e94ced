import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { alertSettings } from '#platform/config/alert-settings';
import { bucketSettings } from '#platform/config/bucket-settings';
import { connectorSettings } from '#platform/config/connector-settings';
import { loginSettings } from '#platform/config/login-settings';
import { processSettings } from '#platform/config/process-settings';
import { volumeSettings } from '#platform/config/volume-settings';

/** BSD's EX_CONFIG: a supervisor must not restart a process that stops with it. */
export const EXIT_CONFIG = 78;
/** The disk has no room, or the user's quota of it (sysexits.h: EX_IOERR). */
export const EXIT_FULL = 74;

export class ConfigError extends Error {}

/**
 * Every setting of every process. Only what starts with TRIVET_ is ours; COSI_ENDPOINT is the specification's, and no
 * setting of ours may begin with COSI_. docs/settings.md lists them for people.
 */
export const configSchema = z.strictObject({
  ...processSettings,
  ...bucketSettings,
  ...volumeSettings,
  ...connectorSettings,
  ...loginSettings,
  ...alertSettings,
});
export type Config = z.output<typeof configSchema>;

type Env = Readonly<Record<string, string | undefined>>;

/** Addresses with a password in them may be given as NAME_FILE instead, which keeps them out of the environment. */
export const FROM_FILE = [
  'TRIVET_DATABASE_URL',
  'TRIVET_DATABASE_ENGINE_URL',
  'TRIVET_DATABASE_OWNER_URL',
  'TRIVET_REDIS_URL',
] as const satisfies (keyof Config)[];

/** Our variables, with the content of the files put in their place; problems are added to the list. */
function ourVariables(env: Env, problems: string[]): Record<string, string | undefined> {
  const ours = Object.fromEntries(
    Object.entries(env)
      .filter(([name, value]) => value !== undefined && /^TRIVET_|^COSI_ENDPOINT$/.test(name))
      .map(([name, value]) => [name, value === '' ? undefined : value]),
  );
  for (const name of FROM_FILE) {
    const variable = `${name}_FILE`;
    const path = ours[variable];
    delete ours[variable];
    if (path === undefined) continue;
    if (ours[name] !== undefined) problems.push(`${variable}: give either this or ${name}, not both`);
    else {
      try {
        ours[name] = readSecretFile(variable, path);
      } catch (error) {
        problems.push((error as Error).message);
      }
    }
  }
  return ours;
}

/**
 * Reads and checks the environment once. Throws ConfigError with a line for each variable: its name, what was expected.
 * `required` names what this process cannot do without.
 */
export function loadConfig<K extends keyof Config>(
  required: readonly K[] = [],
  // biome-ignore lint/style/noProcessEnv: the one place that reads it
  env: Env = process.env,
): Config & { [P in K]-?: NonNullable<Config[P]> } {
  const problems: string[] = [];
  const ours = ourVariables(env, problems);
  const parsed = configSchema.safeParse(ours);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      if (issue.code === 'unrecognized_keys') problems.push(...issue.keys.map(key => `${key}: unknown variable`));
      else problems.push(`${issue.path.join('.')}: ${issue.message}`);
    }
  }
  for (const name of required) {
    const given = ours[name] !== undefined || configSchema.shape[name].safeParse(undefined).data !== undefined;
    if (!given && !problems.some(problem => problem.startsWith(`${name}_FILE:`)))
      problems.push(`${name}: required, but not set`);
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return parsed.data as Config & { [P in K]-?: NonNullable<Config[P]> };
}

/** Of OpenTelemetry's specification, which has its own rules for them. */
export const openTelemetryVariables = (): Env =>
  // biome-ignore lint/style/noProcessEnv: the one place that reads it
  Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('OTEL_')));

/** Carried by every process of a home of `up`, so that what outlives its supervisor can be found. */
export const HOME_MARK = 'SUPERVISED_HOME';

/** For a process that outlives the one that starts it, and gets an environment of its own. */
export function homeMark(): Record<string, string> {
  // biome-ignore lint/style/noProcessEnv: the launcher's, and no setting of ours
  const home = process.env[HOME_MARK];
  return home === undefined ? {} : { [HOME_MARK]: home };
}

/**
 * libuv's pool runs file calls, DNS and the hashes of passwords. A file system that hangs keeps the threads of its calls for
 * good, up to a limit of its own (LANES in libs/backends/src/reflink/file-system-calls.ts): two may do so at a time and leave
 * more than a third of these.
 */
export const THREAD_POOL_SIZE = 48;

/** How many libuv has. */
// biome-ignore lint/style/noProcessEnv: libuv's, and no setting of ours
export const threadPoolSize = (): number => Number(process.env.UV_THREADPOOL_SIZE) || 4;

/** Call it before anything else: libuv reads it when its first work comes. A size that the caller gives stays. */
export function widenThreadPool(): void {
  // biome-ignore lint/style/noProcessEnv: libuv's, and no setting of ours
  process.env.UV_THREADPOOL_SIZE ??= String(THREAD_POOL_SIZE);
}

/** A secret given as a file; the message names the variable, never the content. */
export function readSecretFile(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new ConfigError(`${variable}: cannot read ${path}: ${(error as NodeJS.ErrnoException).code ?? 'error'}`);
  }
}

/** Begins each line that says why a process ended with EXIT_CONFIG; its log has others before it. */
export const CONFIG_LINE = 'trivet: configuration: ';

/** Ends the process the way a supervisor understands: one line for each problem, exit code 78. */
export function exitOnConfigError(error: unknown): never {
  if (!(error instanceof ConfigError)) throw error;
  for (const line of error.message.split('\n')) process.stderr.write(`${CONFIG_LINE}${line}\n`);
  process.exit(EXIT_CONFIG);
}
