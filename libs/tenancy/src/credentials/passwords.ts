import crypto, { randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { invalid, StorageError } from '#platform/errors';

/**
 * Passwords as PHC strings, `$argon2id$v=19$m=<KiB>,t=<passes>,p=<lanes>$<salt>$<tag>` in base64 without padding, so that
 * each says what it was made with and the parameters may change (RFC 9106; invariant T3).
 *
 * One computation takes tens of milliseconds and megabytes on a thread of libuv's pool, which file work needs too: few run
 * at once, the rest waits in line, and a line that is too long is refused.
 */
export interface Argon2Cost {
  memoryKiB: number;
  passes: number;
  lanes: number;
}

/** What OWASP names for argon2id as the least: 19 MiB, two passes. */
export const CURRENT_COST: Argon2Cost = { memoryKiB: 19_456, passes: 2, lanes: 1 };

export type Derive = (password: string, salt: Buffer, cost: Argon2Cost, bytes: number) => Promise<Buffer>;

const TAG_BYTES = 32;
const SALT_BYTES = 16;
const LONGEST_LINE = 256;
/** Characters of a password. */
const [SHORTEST, LONGEST] = [8, 256];

// By its module: an import by name would end an older Node before it could be told that it is too old (boot.ts).
const derive: Derive = (password, nonce, { memoryKiB, passes, lanes }, tagLength) =>
  promisify(crypto.argon2)('argon2id', {
    message: password,
    nonce,
    memory: memoryKiB,
    passes,
    parallelism: lanes,
    tagLength,
  });

const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,64})\$([A-Za-z0-9+/]{22,86})$/;
const base64 = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '');

export interface Verdict {
  matches: boolean;
  /** Made with other parameters than those of today. */
  outdated: boolean;
}

export class Passwords {
  private running = 0;
  private readonly line: (() => void)[] = [];

  constructor(
    private readonly cost: Argon2Cost = CURRENT_COST,
    private readonly atOnce = 2,
    private readonly compute: Derive = derive,
  ) {}

  hash(password: string): Promise<string> {
    return this.inLine(async () => {
      const salt = randomBytes(SALT_BYTES);
      const tag = await this.compute(password, salt, this.cost, TAG_BYTES);
      const { memoryKiB, passes, lanes } = this.cost;
      return `$argon2id$v=19$m=${memoryKiB},t=${passes},p=${lanes}$${base64(salt)}$${base64(tag)}`;
    });
  }

  /**
   * `find` runs when it is this password's turn, so that what a caller learned before the line is no matter; `judge` runs
   * before the next one's. `find` gives the stored string, or undefined for nobody's: that costs the same.
   */
  verify<T>(
    password: string,
    find: () => Promise<string | undefined>,
    judge: (verdict: Verdict) => Promise<T>,
  ): Promise<T> {
    return this.inLine(async () => judge(await this.compare(password, await find())));
  }

  private async compare(password: string, stored: string | undefined): Promise<Verdict> {
    if (stored === undefined) {
      await this.compute(password, randomBytes(SALT_BYTES), this.cost, TAG_BYTES);
      return { matches: false, outdated: false };
    }
    const parts = PHC.exec(stored);
    if (!parts) throw new StorageError('internal', 'a stored password that is no argon2id string');
    const cost = { memoryKiB: Number(parts[1]), passes: Number(parts[2]), lanes: Number(parts[3]) };
    const wanted = Buffer.from(parts[5]!, 'base64');
    const tag = await this.compute(password, Buffer.from(parts[4]!, 'base64'), cost, wanted.length);
    const outdated =
      wanted.length !== TAG_BYTES ||
      (Object.keys(cost) as (keyof Argon2Cost)[]).some(name => cost[name] !== this.cost[name]);
    return { matches: timingSafeEqual(tag, wanted), outdated };
  }

  private async inLine<T>(work: () => Promise<T>): Promise<T> {
    if (this.running < this.atOnce) this.running++;
    else {
      if (this.line.length >= LONGEST_LINE)
        throw new StorageError('unavailable', 'too many logins at once; try again in a few seconds');
      // Whoever ends hands its place over.
      await new Promise<void>(resolve => this.line.push(resolve));
    }
    try {
      return await work();
    } finally {
      const next = this.line.shift();
      if (next) next();
      else this.running--;
    }
  }
}

/** 192 random bits. */
export const generatePassword = (): string => randomBytes(24).toString('base64url');

export function requirePassword(password: string, field = 'password'): string {
  const { length } = password;
  if (length < SHORTEST || length > LONGEST)
    throw invalid(field, `expected ${SHORTEST} to ${LONGEST} characters, got ${length}`);
  return password;
}
