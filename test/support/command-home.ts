import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { programFile } from '#platform/package-root';
import { createDatabase, type TestDatabase } from '#test/support/database';
import { Home } from '../../apps/cli/src/home.js';
import { environmentFile } from '../../apps/cli/src/supervisor/apps.js';

const MAIN = programFile('trivet');

export interface CommandOutcome {
  code: number;
  stdout: string;
  stderr: string;
}

/** A home in which nothing runs, whose settings lead to a migrated database of the test: for commands of operators. */
export class CommandHome {
  /** Arguments and environments that the commands were seen with. */
  readonly commandLines = new Set<string>();

  private constructor(
    readonly home: Home,
    readonly database: TestDatabase,
    private readonly folder: string,
  ) {}

  static async create(): Promise<CommandHome> {
    const folder = mkdtempSync(join(tmpdir(), 'trivet-command-'));
    const home = Home.open(join(folder, 'home'));
    home.ensureKek();
    const database = await createDatabase();
    const passwordFile = home.file('secrets', 'csp-password');
    writeFileSync(passwordFile, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600 });
    const adminFile = home.file('secrets', 'admin-password');
    writeFileSync(adminFile, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600 });
    const env = {
      TRIVET_DATABASE_URL: database.appUrl,
      TRIVET_DATABASE_ENGINE_URL: database.engineUrl,
      TRIVET_DATABASE_OWNER_URL: database.ownerUrl,
      TRIVET_KEK_FILE: home.kekFile,
      TRIVET_CSP_PASSWORD_FILE: passwordFile,
      TRIVET_ADMIN_PASSWORD_FILE: adminFile,
    };
    writeFileSync(home.environmentFile, environmentFile(env), { mode: 0o600 });
    return new CommandHome(home, database, folder);
  }

  trivet(args: readonly string[], input = ''): Promise<CommandOutcome> {
    return new Promise(resolve => {
      const env = { PATH: '/usr/bin:/bin', TRIVET_HOME: this.home.path };
      const child = execFile(process.execPath, [MAIN, ...args], { env }, (error, stdout, stderr) => {
        clearInterval(sampling);
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
      });
      const sampling = setInterval(() => {
        try {
          for (const file of ['cmdline', 'environ'])
            this.commandLines.add(readFileSync(`/proc/${child.pid}/${file}`, 'utf8'));
        } catch {
          // It has ended meanwhile.
        }
      }, 20);
      child.stdin!.end(input);
    });
  }

  async close(): Promise<void> {
    await this.database.drop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
