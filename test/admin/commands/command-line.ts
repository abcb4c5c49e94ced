import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { programFile } from '#platform/package-root';
import { AdminHouse, type Person } from '#test/admin/admin-house';
import { compileCache } from '#test/support/compile-cache';
import { until } from '#test/support/parts';

export const MAIN = programFile('trivet');

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}
interface RunOptions {
  who?: Person;
  input?: string;
  env?: Record<string, string>;
}

/** The commands of an operator, as processes that ask a running gateway. */
export class CommandLine {
  /** Arguments and environments that they were seen with. */
  readonly seen = new Set<string>();
  #house: AdminHouse | undefined;

  get house(): AdminHouse {
    return this.#house!;
  }

  /** For files of the test; no appliance runs there. */
  get home(): string {
    return join(this.house.appliance.folder, 'no-home');
  }

  async start(): Promise<void> {
    await this.startGateway();
    await this.house.appliance.worker();
    await until(
      'the pools were looked at',
      async () => (await this.house.query('SELECT FROM trivet.pool')).length >= 3,
    );
  }

  /** Alone: nobody looks at pools, and what the test writes about them stays. */
  async startGateway(): Promise<void> {
    this.#house = await AdminHouse.create({ block: 'fake' });
    mkdirSync(this.home);
    await this.house.appliance.gateway();
  }

  /** Of a process that knows the database and no gateway. */
  get offline(): Record<string, string> {
    const { env } = this.house.appliance;
    const names = ['TRIVET_DATABASE_URL', 'TRIVET_DATABASE_ENGINE_URL', 'TRIVET_KEK_FILE'];
    const given = Object.fromEntries(names.map(name => [name, env[name]!]));
    return { ...given, TRIVET_ADMIN_URL: '', TRIVET_ADMIN_TOKEN_FILE: '' };
  }

  async close(): Promise<void> {
    await this.#house?.close();
  }

  environment({ username, token }: Person): Record<string, string> {
    const file = join(this.home, username);
    writeFileSync(file, `${token}\n`, { mode: 0o600 });
    return {
      PATH: '/usr/bin:/bin',
      ...compileCache(),
      TRIVET_HOME: this.home,
      TRIVET_ADMIN_URL: this.house.appliance.cspUrl,
      TRIVET_ADMIN_TOKEN_FILE: file,
    };
  }

  readonly run = (
    args: readonly string[],
    { who = this.house.root.admin, input = '', env = {} }: RunOptions = {},
  ): Promise<Ended> =>
    new Promise(resolve => {
      const child = execFile(
        process.execPath,
        [MAIN, ...args],
        { env: { ...this.environment(who), ...env } },
        (error, stdout, stderr) => {
          clearInterval(sampling);
          resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
        },
      );
      const sampling = setInterval(() => {
        try {
          for (const file of ['cmdline', 'environ']) this.seen.add(readFileSync(`/proc/${child.pid}/${file}`, 'utf8'));
        } catch {
          // It has ended meanwhile.
        }
      }, 20);
      child.stdin!.end(input);
    });

  readonly trivet = async (args: readonly string[], options?: RunOptions): Promise<string> => {
    const { code, stdout, stderr } = await this.run(args, options);
    expect({ code, stderr }, `trivet ${args.join(' ')}`).toEqual({ code: 0, stderr: '' });
    return stdout;
  };

  readonly json = async (args: readonly string[], options?: RunOptions) =>
    JSON.parse(await this.trivet([...args, '--json'], options));
}

/** Cells of a table's rows. */
export const rows = (text: string): string[][] =>
  text
    .trim()
    .split('\n')
    .slice(1)
    .map(line => line.split(/ {2,}/));
