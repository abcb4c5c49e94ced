import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Parts, until } from '#test/support/parts';
import { Home } from '../../apps/cli/src/home.js';
import { postgresPart, superuserUrl } from '../../apps/cli/src/parts/postgres.js';
import { Ports } from '../../apps/cli/src/ports.js';
import type { ProcessSpec } from '../../apps/cli/src/processes/supervised-process.js';

/** A PostgreSQL of a test's own, set up as the launcher sets up its own, which the test may end and start again. */
export class OwnPostgres {
  private child: ChildProcess | undefined;
  private spec: ProcessSpec | undefined;
  private outside: string | undefined;
  private found: Parts['postgres'] | undefined;
  private readonly home = Home.open(mkdtempSync(join(tmpdir(), 'trivet-pg-')));

  /** @param throwAway it waits for no disk, as that of a run of tests; false: as an appliance's own does */
  static async start({ throwAway = true } = {}): Promise<OwnPostgres> {
    const postgres = new OwnPostgres();
    try {
      await postgres.setUp(throwAway);
    } catch (error) {
      await postgres.close();
      throw error;
    }
    return postgres;
  }

  get urls(): Parts['postgres'] {
    return this.found!;
  }

  /** How its process is started; it works in the data's folder. */
  get process(): ProcessSpec {
    return this.spec!;
  }

  /** fast: sessions are ended, a checkpoint is written. immediate: everything dies, the next start recovers. killed: -9. */
  async stop(mode: 'fast' | 'immediate' | 'killed'): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise(resolve => child.once('exit', resolve));
    child.kill(({ fast: 'SIGINT', immediate: 'SIGQUIT', killed: 'SIGKILL' } as const)[mode]);
    await ended;
  }

  async startAgain(): Promise<void> {
    const { command, args, env, cwd, uid, gid, logFile, ready, beforeStart } = this.spec!;
    await beforeStart?.();
    const log = openSync(logFile, 'a');
    this.child = spawn(command, [...args], { env: { ...env }, cwd, uid, gid, stdio: ['ignore', log, log] });
    closeSync(log);
    const { pid = 0 } = this.child;
    await until('PostgreSQL answers', () => ready(pid), 60_000);
  }

  async close(): Promise<void> {
    await this.stop('immediate');
    for (const folder of [this.home.path, this.home.run, this.outside])
      if (folder) rmSync(folder, { recursive: true, force: true });
  }

  private async setUp(throwAway: boolean): Promise<void> {
    const ports = new Ports(this.home, false);
    const urls = await postgresPart.start({
      home: this.home,
      ports,
      mark: {},
      throwAway,
      install: false,
      say: () => {},
      run: spec => {
        this.spec = spec;
        return this.startAgain();
      },
      keepOutside: folder => {
        this.outside = folder;
      },
      signal: new AbortController().signal,
    });
    this.found = {
      superuserUrl: superuserUrl(this.home, ports.kept('postgres')!),
      ownerUrl: urls.TRIVET_DATABASE_OWNER_URL!,
      appUrl: urls.TRIVET_DATABASE_URL!,
      engineUrl: urls.TRIVET_DATABASE_ENGINE_URL!,
    };
  }
}
