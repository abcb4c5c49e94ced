import { Client, type ClientConfig } from 'pg';
import { parseAddress } from '#platform/config/database-address';
import { DatabaseHosts, isReadOnly, parametersOf } from '#platform/database/database-hosts';

/** `hosts`: whom to choose from; absent: the one of the address. */
export type DatabaseClientConfig = ClientConfig & { hosts?: DatabaseHosts };

/** For a connection that no pool makes: of an address with any number of hosts. */
export function ofAddress(text: string): DatabaseClientConfig {
  const address = parseAddress(text);
  if (!address?.readWrite) return { connectionString: text };
  return { connectionString: address.url, hosts: DatabaseHosts.of(address) };
}

type Connected = ((error: Error) => void) | ((error: null, client: Client) => void);

/**
 * A connection that never ends the process. A server that goes away says so at any instant, also in the packet of the answer
 * that hands the connection out: before whoever waits for it can listen. Later statements on it are refused.
 *
 * Of several servers it goes to the one that takes writes.
 */
export class DatabaseClient extends Client {
  readonly #config: DatabaseClientConfig;

  constructor(config: DatabaseClientConfig = {}) {
    super(config);
    this.#config = config;
    this.on('error', () => {});
  }

  override connect(): Promise<Client>;
  override connect(callback: Connected): void;
  override connect(callback?: Connected): Promise<Client> | undefined {
    const { hosts } = this.#config;
    if (hosts === undefined && callback === undefined) return super.connect();
    if (hosts === undefined) {
      super.connect(callback!);
      return undefined;
    }
    const opened = this.#open(hosts);
    if (callback === undefined) return opened;
    const told = callback as (error: Error | null, client?: Client) => void;
    void opened.then(client => told(null, client), told);
    return undefined;
  }

  async #open(hosts: DatabaseHosts): Promise<Client> {
    const { hosts: _, ...config } = this.#config;
    const server = await hosts.find(config);
    const { connection } = this as unknown as { connection: Connection };
    // The pool gave it up meanwhile.
    if (connection.stream.destroyed) throw new Error('timeout exceeded when trying to connect');
    Object.assign(this, { host: server.host, port: server.port });
    const parameters = parametersOf(this);
    try {
      await super.connect();
    } catch (error) {
      hosts.doubt(server);
      throw error;
    }
    this.once('error', () => hosts.doubt(server));
    if (isReadOnly(parameters) || hosts.isReplaced(server)) {
      hosts.doubt(server);
      await this.end().catch(() => {});
      throw Object.assign(new Error('the server takes no writes any more'), { code: '57P03' });
    }
    // With an error, so that whoever has it hears that it is gone.
    const end = (error: Error) => connection.stream.destroy(error);
    hosts.opened(server, end);
    this.once('end', () => hosts.ended(end));
    connection.on('errorMessage', ({ code }) => {
      if (code === READ_ONLY) end(new Error('the server takes no writes any more'));
    });
    return this;
  }
}

/** What a primary says that was made read-only: its other answers look well, and the connection stays. */
const READ_ONLY = '25006';

interface Connection {
  /** With TLS it is another one than at first. */
  stream: { destroyed: boolean; destroy(error: Error): void };
  on(event: 'errorMessage', hear: (message: { code?: string }) => void): void;
}
