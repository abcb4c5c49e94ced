import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { CountedTries } from '#tenancy/factors/second-factors';
import { LoginThrottled } from '#tenancy/logins/session-directory';

const BLOCKED = sql('login_blocked', 'SELECT trivet.login_blocked($1) AS seconds');
const FAILED = sql('login_failed', 'SELECT trivet.login_failed($1, $2, $3) AS failures');
const SUCCEEDED = sql('login_succeeded', 'SELECT trivet.login_succeeded($1)');

/** Failures that cost nothing, and the longest wait in seconds. */
const ACCOUNT = { free: 5, cap: 60 };
const ADDRESS = { free: 20, cap: 300 };

/**
 * Wrong passwords make the next try wait: 1 s, 2 s, 4 s ... for the account, whoever tries, and for the address, whatever
 * it tries. One failure is forgiven a minute. It is kept in Postgres, so that every gateway knows it.
 *
 * Drivers go on with an old password until they are restarted, often from one address with those that know the new one:
 * what is tried on an account that is blocked already no longer counts against the address.
 */
export class LoginThrottle {
  constructor(private readonly database: Pick<Database, 'call'>) {}

  /** In a transaction whose lock all tries of one account wait for: each counts before the next one is looked at. */
  static triesOf(account: string, address: string): CountedTries {
    const within = (tx: Tx) => new LoginThrottle({ call: (statement, params) => tx.query(statement, params) });
    return {
      check: tx => within(tx).check(account, address),
      failed: tx => within(tx).failed(account, address),
    };
  }

  /** Throws LoginThrottled. */
  async check(account: string, address: string): Promise<void> {
    const [row] = await this.database.call<{ seconds: number }>(BLOCKED, [[accountOf(account), addressOf(address)]]);
    if (row!.seconds > 0) throw new LoginThrottled(row!.seconds);
  }

  async failed(account: string, address: string): Promise<void> {
    const [row] = await this.database.call<{ failures: number }>(FAILED, [
      accountOf(account),
      ACCOUNT.free,
      ACCOUNT.cap,
    ]);
    if (row!.failures <= ACCOUNT.free) await this.failedFrom(address);
  }

  /** As `check` and `failed`, for logins without an account of ours. */
  async checkAddress(address: string): Promise<void> {
    const [row] = await this.database.call<{ seconds: number }>(BLOCKED, [[addressOf(address)]]);
    if (row!.seconds > 0) throw new LoginThrottled(row!.seconds);
  }

  async failedFrom(address: string): Promise<void> {
    await this.database.call(FAILED, [addressOf(address), ADDRESS.free, ADDRESS.cap]);
  }

  async succeeded(account: string): Promise<void> {
    await this.database.call(SUCCEEDED, [accountOf(account)]);
  }
}

/** Hashed: people type their password where the name belongs. */
const accountOf = (name: string): string => `account:${createHash('sha256').update(name).digest('hex')}`;
const addressOf = (address: string): string => `address:${network(address)}`;

/** Whoever has one IPv6 address has the 2^64 beside it. */
export function network(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const plain = address.replace(/%.*$/, '');
  if (isIP(plain) !== 6) return address;
  const [head = '', tail] = new URL(`http://[${plain}]`).hostname.slice(1, -1).split('::');
  const groups = (part: string | undefined) => (part ? part.split(':') : []);
  const [first, last] = [groups(head), groups(tail)];
  const zeros = Array<string>(tail === undefined ? 0 : 8 - first.length - last.length).fill('0');
  return `${[...first, ...zeros, ...last].slice(0, 4).join(':')}::/64`;
}
