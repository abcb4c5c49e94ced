import { execFile } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { programFile } from '#platform/package-root';
import { compileCache } from '#test/support/compile-cache';

export const MAIN = programFile('trivet');

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

interface ProcessRow {
  name: string;
  pid: number;
  restarts: number;
  state: string;
}

export interface Status {
  state: string;
  version: string;
  home: string;
  dataOutside?: string;
  failure?: string;
  cosi?: { endpoint: string };
  admin?: { url: string };
  csp?: { url: string; tlsUrl?: string };
  objectStore?: { endpoint: string; region: string };
  http?: { url: string };
  credentialsFile?: string;
  processes: ProcessRow[];
  backends: { name: string; kind: string; state: string; capabilities: string[] }[];
  skipped: { part: string; reason: string; remedy: string }[];
}

/** One home of a test and the launcher's commands for it, with no setting of the run that the test is part of. */
export class TestHome {
  readonly settings: Record<string, string> = {};
  path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  uid: number | undefined;

  constructor(readonly home: string) {}

  file(...names: string[]): string {
    return join(this.home, ...names);
  }

  run(...args: string[]): Promise<Outcome> {
    return new Promise(resolve => {
      execFile(
        process.execPath,
        [MAIN, ...args],
        {
          cwd: '/',
          env: {
            PATH: this.path,
            HOME: '/nonexistent',
            LANG: 'C.UTF-8',
            TRIVET_HOME: this.home,
            ...compileCache(),
            ...this.settings,
          },
          uid: this.uid,
          gid: this.uid,
          maxBuffer: 16 * 1024 * 1024,
        },
        (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
      );
    });
  }

  /** As `run`, for what has to succeed. */
  async must(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...args);
    if (code !== 0) throw new Error(`trivet ${args.join(' ')} ended with ${code}\n${stdout}${stderr}`);
    return stdout;
  }

  async status(): Promise<Status> {
    return JSON.parse((await this.run('status', '--json')).stdout);
  }

  async process(name: string): Promise<ProcessRow> {
    const row = (await this.status()).processes.find(entry => entry.name === name);
    if (row === undefined) throw new Error(`${name} does not run`);
    return row;
  }

  get supervisor(): number {
    return JSON.parse(readFileSync(this.file('state.json'), 'utf8')).supervisor.pid;
  }

  /** Parts that die while the supervisor stands still stay dead until it goes on. */
  async withoutSupervisor(work: () => Promise<void>): Promise<void> {
    const { supervisor } = this;
    process.kill(supervisor, 'SIGSTOP');
    try {
      await work();
    } finally {
      process.kill(supervisor, 'SIGCONT');
    }
  }

  async kill(...names: string[]): Promise<void> {
    for (const name of names) process.kill((await this.process(name)).pid, 'SIGKILL');
  }

  /** The settings of the env file, as a shell would get them. */
  environment(): Record<string, string> {
    const lines = readFileSync(this.file('env'), 'utf8').matchAll(/^export (\w+)='(.*)'$/gm);
    return Object.fromEntries([...lines].map(([, name, value]) => [name, value]));
  }
}

/** A folder for the homes of a test file; `clear` takes down and deletes all of them. */
export class TestHomes {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'launcher-')));
  readonly #homes: TestHome[] = [];

  constructor() {
    // PostgreSQL's user passes through.
    chmodSync(this.folder, 0o711);
  }

  at(...names: string[]): TestHome {
    const home = new TestHome(join(this.folder, ...names));
    this.#homes.push(home);
    return home;
  }

  /** A folder above homes, with a mode of its own. */
  folderAt(name: string, mode: number): string {
    const path = join(this.folder, name);
    mkdirSync(path, { recursive: true });
    chmodSync(path, mode);
    return path;
  }

  async clear(): Promise<void> {
    for (const home of this.#homes) if (existsSync(home.home)) await home.must('down', '--purge', '--yes');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Command lines of everything that still runs for a home. */
export function processesOf(text: string): string[] {
  const found: string[] = [];
  for (const pid of readdirOfProc()) {
    if (pid === String(process.pid)) continue;
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
      if (line.includes(text) || environment.includes(`SUPERVISED_HOME=${text}\0`)) found.push(line);
    } catch {
      // ended meanwhile
    }
  }
  return found;
}

function readdirOfProc(): string[] {
  return readdirSync('/proc').filter(name => /^\d+$/.test(name));
}
