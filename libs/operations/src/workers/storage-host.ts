import { readFileSync } from 'node:fs';
import { freemem, hostname } from 'node:os';
import type { TaskHost } from '#operations/workers/task-claims';
import type { Reach } from '#operations/workers/worker-directory';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { hearApplianceTime } from '#platform/process/appliance-time';

const TIME = 'extract(epoch FROM clock_timestamp())::float8 * 1000 AS time';
const JOIN = sql('storage_host_join', `SELECT trivet.join_storage_host($1, $2, $3, $4) AS name, ${TIME}`);
/** Losing one in a crash of the database is no matter: the next one comes. */
const BEAT = sql(
  'storage_host_beat',
  `WITH relaxed AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
   SELECT trivet.storage_host_beat($1, $2, $3, $4, $5, $6) AS several, ${TIME} FROM relaxed`,
);

/**
 * The machine that a worker works on, as the other ones know it: by TRIVET_HOST, else by the machine's name. Each of its workers
 * says with its heartbeat that it lives; several workers of one host are the same to everybody.
 */
export class StorageHost implements TaskHost {
  /** There are others: then, and only then, operations on pools go to the hosts that have them. */
  isOneOfSeveral = false;
  /** Undefined until it has looked: what its workers said before is kept. */
  reach: Reach | undefined;

  private constructor(
    private readonly database: Pick<Database, 'engine'>,
    readonly name: string,
    private readonly named: boolean,
    private readonly release: string,
  ) {}

  /** @param named TRIVET_HOST; without one the workers of a machine are of one host, whatever their containers are called */
  static async join(
    database: Pick<Database, 'engine'>,
    named: string | undefined,
    release: string,
  ): Promise<StorageHost> {
    const asked = [named ?? hostname(), named !== undefined, machine(), release];
    const [row] = await database.engine<{ name: string; time: number }>(JOIN, asked);
    hearApplianceTime(row!.time);
    return new StorageHost(database, row!.name, named !== undefined, release);
  }

  /** It lives. */
  async beat(): Promise<void> {
    const { name, named, release, reach } = this;
    const beat = [name, named, machine(), release, reach ? JSON.stringify(reach) : null, freemem()];
    const [row] = await this.database.engine<{ several: boolean; time: number }>(BEAT, beat);
    hearApplianceTime(row!.time);
    this.isOneOfSeveral = row!.several;
  }
}

/** The run of the kernel: containers of one machine have names of their own, and this one in common. */
const machine = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
