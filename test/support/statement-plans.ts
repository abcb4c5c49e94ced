import pg from 'pg';
import { DatabaseClient } from '#platform/database/database-client';

export interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  Filter?: string;
  'Rows Removed by Filter'?: number;
  'Shared Hit Blocks'?: number;
  'Shared Read Blocks'?: number;
  Plans?: PlanNode[];
}

/** A statement that was executed, those inside of functions too. */
export interface ExplainedStatement {
  text: string;
  plan: PlanNode;
}

const SETTINGS = {
  session_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': '-1',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_buffers': 'on',
  'auto_explain.log_timing': 'off',
  'auto_explain.log_nested_statements': 'on',
  'auto_explain.log_format': 'json',
  'auto_explain.log_level': 'notice',
};

export const nodesOf = (plan: PlanNode): PlanNode[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

/** Has a server of a test's own tell this process how each of its statements was carried out. */
export class StatementPlans {
  private heard: ExplainedStatement[] = [];

  private constructor(
    private readonly server: pg.Client,
    private readonly unhook: () => void,
  ) {}

  /** Before the connections are opened whose statements are of interest. */
  static async of(superuserUrl: string): Promise<StatementPlans> {
    const server = new pg.Client({ connectionString: superuserUrl });
    await server.connect();
    await server.query("LOAD 'auto_explain'");
    for (const [name, value] of Object.entries(SETTINGS)) await server.query(`ALTER SYSTEM SET ${name} = '${value}'`);
    await server.query('SELECT pg_reload_conf()');
    const { emit } = DatabaseClient.prototype;
    const plans = new StatementPlans(server, () => {
      DatabaseClient.prototype.emit = emit;
    });
    DatabaseClient.prototype.emit = function (this: DatabaseClient, event: string | symbol, ...given: unknown[]) {
      if (event === 'notice') plans.hear((given[0] as { message?: string }).message ?? '');
      return emit.call(this, event as never, ...(given as []));
    } as typeof emit;
    return plans;
  }

  /** Another setting of that server. */
  async set(name: string, value: string): Promise<void> {
    await this.server.query(`ALTER SYSTEM SET ${name} = '${value}'`);
    await this.server.query('SELECT pg_reload_conf()');
  }

  /** What is executed while `work` runs. */
  async during(work: () => Promise<unknown>): Promise<ExplainedStatement[]> {
    await this.tell(true);
    this.heard = [];
    try {
      await work();
      return this.heard;
    } finally {
      await this.tell(false);
    }
  }

  async close(): Promise<void> {
    this.unhook();
    await this.server.end();
  }

  private hear(message: string): void {
    const at = message.indexOf('plan:\n');
    if (!message.startsWith('duration: ') || at < 0) return;
    const told = JSON.parse(message.slice(at + 'plan:'.length)) as { 'Query Text': string; Plan: PlanNode };
    this.heard.push({ text: told['Query Text'], plan: told.Plan });
  }

  /** Sessions that are open take it at their next statement. */
  private async tell(wanted: boolean): Promise<void> {
    await this.server.query(`ALTER SYSTEM SET auto_explain.log_min_duration = ${wanted ? 0 : -1}`);
    await this.server.query('SELECT pg_reload_conf()');
    // The postmaster passes the signal on to all: whoever sees it here sees it everywhere a moment later.
    for (let seen = ''; seen !== (wanted ? '0' : '-1'); ) {
      const { rows } = await this.server.query<{ value: string }>(
        "SELECT current_setting('auto_explain.log_min_duration') AS value FROM pg_sleep(0.02)",
      );
      seen = rows[0]!.value;
    }
  }
}

/** Pages of 8 KiB that were touched; those of statements inside of functions count for both. */
export const pagesOf = (statements: readonly ExplainedStatement[]): number =>
  statements.reduce((sum, { plan }) => sum + (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0), 0);
