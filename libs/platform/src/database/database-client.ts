import { Client } from 'pg';

/**
 * A connection that never ends the process. A server that goes away says so at any instant, also in the packet of the answer
 * that hands the connection out: before whoever waits for it can listen. Later statements on it are refused.
 */
export class DatabaseClient extends Client {
  constructor(...args: ConstructorParameters<typeof Client>) {
    super(...args);
    this.on('error', () => {});
  }
}
