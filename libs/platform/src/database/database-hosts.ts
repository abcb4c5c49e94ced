import { Client, type ClientConfig } from 'pg';
import type { DatabaseAddress, Host } from '#platform/config/database-address';
import { createLogger } from '#platform/logging/log';

const log = createLogger('database');

/** Of one server: less than a pool waits for a connection. */
const PROBE_MS = 2_000;
/** For the others, once one has answered that takes writes: a second one may have been promoted meanwhile. */
const BESIDE_MS = 500;
/** For how long nobody looks again after nobody was found. */
const PAUSE_MS = 200;

/** PostgreSQL's own word since 14, in the packet that opens a session. */
export function isReadOnly(parameters: ReadonlyMap<string, string>): boolean {
  return parameters.get('in_hot_standby') === 'on' || parameters.get('default_transaction_read_only') === 'on';
}

/** What a connection is told of its server while it is opened. */
export function parametersOf(client: Client): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  const { connection } = client as unknown as {
    connection: { on(event: string, hear: (message: { parameterName: string; parameterValue: string }) => void): void };
  };
  connection.on('parameterStatus', message => parameters.set(message.parameterName, message.parameterValue));
  return parameters;
}

export interface Found extends Host {
  /** Grows with each promotion. */
  timeline: number;
}

type EndConnection = (error: Error) => void;

/** Errors that the caller takes as "not now": of a server that starts, or of none that takes writes. */
const noPrimary = (why = 'no server of the address takes writes'): Error =>
  Object.assign(new Error(why), { code: '57P03' as const });

/**
 * The servers of one address, and which of them takes writes. That is asked of all at once when it is not known, and again when a
 * connection broke. Of two that take writes, as after a promotion whose old primary came back, it is the one that was promoted.
 */
export class DatabaseHosts {
  private static readonly all = new Map<string, DatabaseHosts>();
  /** How to end each open connection, and the timeline of its server. */
  private readonly open = new Map<EndConnection, number>();
  private known: Found | undefined;
  private highest = 0;
  private searching: Promise<Found> | undefined;
  private failedAt = Number.NEGATIVE_INFINITY;
  private failure: unknown;

  private constructor(readonly address: DatabaseAddress) {}

  /** One for the whole process: what one pool has found, the others must not miss. */
  static of(address: DatabaseAddress): DatabaseHosts {
    const key = address.hosts.map(({ host, port }) => `${host} ${port}`).join();
    const known = DatabaseHosts.all.get(key) ?? new DatabaseHosts(address);
    DatabaseHosts.all.set(key, known);
    return known;
  }

  /** @param config how to log in there */
  find(config: ClientConfig): Promise<Found> {
    if (this.known) return Promise.resolve(this.known);
    if (performance.now() - this.failedAt < PAUSE_MS) return Promise.reject(this.failure);
    this.searching ??= this.search(config).finally(() => {
      this.searching = undefined;
    });
    return this.searching;
  }

  /** A connection to a server of this timeline broke, or that takes no writes. */
  doubt(timeline: number): void {
    if (!this.isReplaced(timeline)) this.known = undefined;
  }

  isReplaced(timeline: number): boolean {
    return timeline < this.highest;
  }

  /** @param end called once its server is replaced, which may live on and would take its writes */
  opened(timeline: number, end: EndConnection): void {
    this.open.set(end, timeline);
  }

  ended(end: EndConnection): void {
    this.open.delete(end);
  }

  private async search(config: ClientConfig): Promise<Found> {
    const { hosts } = this.address;
    const errors: unknown[] = [];
    const found: Found[] = [];
    await new Promise<void>(resolve => {
      let left = hosts.length;
      for (const host of hosts)
        void probe(config, host)
          .then(
            one => {
              found.push(one);
              setTimeout(resolve, BESIDE_MS).unref();
            },
            error => errors.push(error),
          )
          .finally(() => {
            left--;
            if (left === 0) resolve();
          });
    });
    const best = found.sort((a, b) => b.timeline - a.timeline)[0];
    if (!best || best.timeline < this.highest) {
      this.failure = best
        ? noPrimary('the only server that takes writes is one that was replaced')
        : (errors.find(isRefusal) ?? errors.find(isNoPrimary) ?? errors[0]);
      // Another login may be right.
      if (!isRefusal(this.failure)) this.failedAt = performance.now();
      throw this.failure;
    }
    if (found.length > 1)
      log.error(
        { hosts: found, taken: best },
        'two servers of the database take writes: stop the one that was replaced',
      );
    if (this.highest > 0 && best.timeline > this.highest)
      log.warn(
        { ...best, before: this.highest },
        'another server of the database was promoted, and is used from now on',
      );
    this.highest = best.timeline;
    this.known = best;
    for (const [end, timeline] of this.open) if (this.isReplaced(timeline)) end(replaced());
    return best;
  }
}

/** As of a server that was shut down. */
const replaced = (): Error =>
  Object.assign(new Error('another server of the database was promoted'), { code: '57P01' as const });

const codeOf = (error: unknown): string => String((error as { code?: unknown } | undefined)?.code ?? '');
/** Who refuses our login says more than who is not there. */
const isRefusal = (error: unknown): boolean => /^(28...|3D000|42501)$/.test(codeOf(error));
const isNoPrimary = (error: unknown): boolean => codeOf(error) === '57P03';

async function probe(config: ClientConfig, at: Host): Promise<Found> {
  const client = new Client({ ...config, connectionTimeoutMillis: PROBE_MS, query_timeout: PROBE_MS });
  client.on('error', () => {});
  Object.assign(client, at);
  const parameters = parametersOf(client);
  try {
    await client.connect();
    if (isReadOnly(parameters)) throw noPrimary();
    const { rows } = await client.query<{ file: string }>('SELECT pg_walfile_name(pg_current_wal_lsn()) AS file');
    return { ...at, timeline: Number.parseInt(rows[0]!.file.slice(0, 8), 16) };
  } finally {
    client.end().catch(() => {});
  }
}
