import { Client, type ClientConfig } from 'pg';
import type { DatabaseAddress, Host } from '#platform/config/database-address';
import {
  areStrangers,
  order,
  type Standing,
  standingOf,
  UndeclaredDatabase,
} from '#platform/database/database-standing';
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

export type Found = Host & Standing;

type EndConnection = (error: Error) => void;

/** Errors that the caller takes as "not now": of a server that starts, or of none that takes writes. */
const noPrimary = (why = 'no server of the address takes writes'): Error =>
  Object.assign(new Error(why), { code: '57P03' as const });

/**
 * The servers of one address, and which of them takes writes. That is asked of all at once when it is not known, and again when a
 * connection broke. Of two that take writes, as after a promotion whose old primary came back, it is the one that was promoted;
 * of two clusters, as after a restore into another one, the one that was declared (ADR 35).
 */
export class DatabaseHosts {
  private static readonly all = new Map<string, DatabaseHosts>();
  /** How to end each open connection, and to whom it leads. */
  private readonly open = new Map<EndConnection, Standing>();
  private known: Found | undefined;
  private highest: Standing | undefined;
  /** Of whom was said that nobody has declared them. */
  private readonly undeclared = new Set<string>();
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

  /** A connection to this server broke, or it takes no writes. */
  doubt(server: Standing): void {
    if (!this.isReplaced(server)) this.known = undefined;
  }

  isReplaced(server: Standing): boolean {
    return this.highest !== undefined && order(server, this.highest) < 0;
  }

  /** @param end called once its server is replaced, which may live on and would take its writes */
  opened(server: Standing, end: EndConnection): void {
    this.open.set(end, server);
  }

  ended(end: EndConnection): void {
    this.open.delete(end);
  }

  private async search(config: ClientConfig): Promise<Found> {
    const { found, errors: said } = await probeAll(config, this.address.hosts);
    // The login was right where we came from: a server that is being set up, to be restored into.
    const errors = this.highest ? said.map(one => (isRefusal(one) ? noPrimary((one as Error).message) : one)) : said;
    // A server that is being set up, to be restored into, stands back behind one that has a schema.
    const full = found.filter(one => !one.isBare);
    const all = (full.length > 0 ? full : found).sort((a, b) => order(b, a));
    const strangers = full.length > 0 || this.highest ? this.strangersAmong(all) : [];
    const [best] = all.filter(one => !strangers.includes(one));
    const undeclared = [...errors.filter(isUndeclared), ...strangers.map(one => new UndeclaredDatabase(one))];
    for (const one of undeclared) this.sayOnce(one);
    if (!best || this.isReplaced(best)) {
      this.failure =
        errors.find(isRefusal) ??
        undeclared[0] ??
        (best
          ? noPrimary('the only server that takes writes is one that was replaced')
          : (errors.find(isNoPrimary) ?? errors[0]));
      // Another login may be right.
      if (!isRefusal(this.failure)) this.failedAt = performance.now();
      throw this.failure;
    }
    if (all.length > 1)
      log.error({ hosts: all, taken: best }, 'two servers of the database take writes: stop the one that was replaced');
    // What it is shows when it has one: the next connection asks again.
    if (best.isBare) return best;
    const { highest: before } = this;
    if (before && best.declared > before.declared)
      log.warn({ ...best, before }, 'another database was declared to be the restored one, and is used from now on');
    else if (before && best.timeline > before.timeline)
      log.warn({ ...best, before }, 'another server of the database was promoted, and is used from now on');
    this.highest = best;
    this.known = best;
    for (const [end, server] of this.open) if (this.isReplaced(server)) end(replaced());
    return best;
  }

  /** Of another cluster than the one that was used; while none was, two that know nothing of each other. */
  private strangersAmong(found: readonly Found[]): Found[] {
    const { highest } = this;
    if (highest) return found.filter(one => areStrangers(one, highest));
    const [first] = found;
    return first && found.some(one => areStrangers(one, first))
      ? found.filter(one => one.declared === first.declared)
      : [];
  }

  private sayOnce(error: UndeclaredDatabase): void {
    const server = `${error.at.host} ${error.at.port}`;
    if (!this.undeclared.has(server)) log.error({ host: error.at.host, port: error.at.port }, error.message);
    this.undeclared.add(server);
  }
}

/** As of a server that was shut down. */
const replaced = (): Error =>
  Object.assign(new Error('another server of the database was promoted'), { code: '57P01' as const });

const codeOf = (error: unknown): string => String((error as { code?: unknown } | undefined)?.code ?? '');
/** Who refuses our login says more than who is not there. */
const isRefusal = (error: unknown): boolean => /^(28...|3D000|42501)$/.test(codeOf(error));
const isNoPrimary = (error: unknown): boolean => codeOf(error) === '57P03';
const isUndeclared = (error: unknown): error is UndeclaredDatabase => error instanceof UndeclaredDatabase;

/** Those that take writes, and what the others say; of slow ones nothing, once one has answered. */
function probeAll(config: ClientConfig, hosts: readonly Host[]): Promise<{ found: Found[]; errors: unknown[] }> {
  const errors: unknown[] = [];
  const found: Found[] = [];
  return new Promise(resolve => {
    const end = () => resolve({ found: [...found], errors: [...errors] });
    let left = hosts.length;
    for (const host of hosts)
      void probe(config, host, standingOf)
        .then(
          standing => {
            found.push({ ...host, ...standing });
            if (!standing.isBare) setTimeout(end, BESIDE_MS).unref();
          },
          error => errors.push(error),
        )
        .finally(() => {
          left--;
          if (left === 0) end();
        });
  });
}

/** Which of these take writes, whatever was declared of them. */
export async function takingWrites(config: ClientConfig, hosts: readonly Host[]): Promise<Host[]> {
  const asked = await Promise.allSettled(hosts.map(host => probe(config, host, async () => host)));
  return asked.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []));
}

async function probe<T>(config: ClientConfig, at: Host, ask: (client: Client, at: Host) => Promise<T>): Promise<T> {
  const client = new Client({ ...config, connectionTimeoutMillis: PROBE_MS, query_timeout: PROBE_MS });
  client.on('error', () => {});
  Object.assign(client, at);
  const parameters = parametersOf(client);
  try {
    await client.connect();
    if (isReadOnly(parameters)) throw noPrimary();
    return await ask(client, at);
  } finally {
    client.end().catch(() => {});
  }
}

/** Of which of these there was no answer of a PostgreSQL at all. */
export async function silentAmong(config: ClientConfig, hosts: readonly Host[]): Promise<Host[]> {
  const asked = await Promise.allSettled(hosts.map(host => probe(config, host, async () => host)));
  return hosts.filter((_, at) => {
    const one = asked[at]!;
    return one.status === 'rejected' && !/^[0-9A-Z]{5}$/.test(codeOf(one.reason));
  });
}
