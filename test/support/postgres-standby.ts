import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { appendFileSync, closeSync, openSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { freePort } from '#test/support/free-port';
import { until } from '#test/support/parts';
import type { OwnPostgres } from '#test/support/postgres-server';

/** A copy of a server of a test's own, which follows it by streaming until it is promoted. */
export class PostgresStandby {
  private child: ChildProcess | undefined;

  private constructor(
    readonly port: number,
    private readonly primary: OwnPostgres,
  ) {}

  /** The primary is down while it is copied, and runs again then. */
  static async of(primary: OwnPostgres): Promise<PostgresStandby> {
    const standby = new PostgresStandby(await freePort(), primary);
    try {
      await standby.start();
    } catch (error) {
      await standby.close();
      throw error;
    }
    return standby;
  }

  /** The same login at this server. */
  url(ofPrimary: string): string {
    return Object.assign(new URL(ofPrimary), { port: String(this.port) }).href;
  }

  async promote(): Promise<void> {
    await this.ask('SELECT pg_promote()');
    await until('it takes writes', async () => {
      const [row] = await this.ask<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby');
      return !row!.standby;
    });
  }

  /** It follows no more, as one whose network is gone: what comes now is lost with the primary. */
  async cutOff(): Promise<void> {
    await this.ask("ALTER SYSTEM SET primary_conninfo = ''");
    await this.ask('SELECT pg_reload_conf()');
    await until('nobody streams', async () => {
      return (await asked(this.primary.urls.superuserUrl, 'SELECT FROM pg_stat_replication')).length === 0;
    });
  }

  ask<Row>(text: string): Promise<Row[]> {
    return asked<Row>(this.url(this.primary.urls.superuserUrl), text);
  }

  async close(): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise(resolve => child.once('exit', resolve));
    child.kill('SIGQUIT');
    await ended;
  }

  private async start(): Promise<void> {
    const { command, env, uid, gid, cwd } = this.primary.process;
    const { superuserUrl } = this.primary.urls;
    const data = join(dirname(cwd), 'standby');
    await this.primary.stop('fast');
    execFileSync('cp', ['-a', cwd, data]);
    const { hostname, port, password } = new URL(superuserUrl);
    const conninfo = `host=${hostname} port=${port} user=postgres password=${password} application_name=standby`;
    appendFileSync(
      join(data, 'postgresql.conf'),
      `\nport = ${this.port}\nunix_socket_directories = ''\nprimary_conninfo = '${conninfo}'\n`,
    );
    writeFileSync(join(data, 'standby.signal'), '');
    await this.primary.startAgain();
    const log = openSync(join(data, 'standby.log'), 'a');
    this.child = spawn(command, ['-D', data], { env: { ...env }, cwd: data, uid, gid, stdio: ['ignore', log, log] });
    closeSync(log);
    await until(
      'the standby follows',
      async () => {
        const rows = await asked(superuserUrl, "SELECT FROM pg_stat_replication WHERE state = 'streaming'");
        return rows.length === 1;
      },
      60_000,
    );
  }
}

async function asked<Row>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client(url);
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(text)).rows as Row[];
  } finally {
    await client.end();
  }
}
