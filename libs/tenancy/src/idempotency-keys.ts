import { timingSafeEqual } from 'node:crypto';
import { decodeSealed, encodeSealed, type SecretBox, type SecretPlace } from '#platform/crypto/secrets';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { uuidv7 } from '#platform/uuid';

const log = createLogger('idempotency');

/** Whose key it is: two users may choose the same. */
export interface KeyOwner {
  tenantId: string;
  userId: string;
  key: string;
}

export interface KeptAnswer {
  status: number;
  headers: Record<string, string>;
  body: unknown;
}

/** A call that has the key now: it ends it by one of the two. */
export interface KeyClaim {
  /** For a day, calls with the same key get this. */
  keep(answer: KeptAnswer): Promise<void>;
  /** The key was never used. */
  release(): Promise<void>;
}

export type KeyState = { claim: KeyClaim } | { answer: KeptAnswer } | 'other_request' | 'under_way';

/**
 * Answers of calls that a caller may repeat because it did not hear them. Request and answer are sealed: a request may
 * hold a password, whose hash somebody could guess at, and an answer a secret that is shown this once.
 */
export interface IdempotencyKeys {
  /** @param request what must be the same again: 32 bytes, e.g. a SHA-256 */
  take(owner: KeyOwner, request: Buffer): Promise<KeyState>;
}

/** How long an answer is kept. */
const KEPT = `interval '24 hours'`;
/** A call says that it lives this often, and is taken for dead after so long without a word. */
const ALIVE_MS = 15_000;
const DEAD = `interval '60 seconds'`;

const CLAIM = sql(
  'idempotency_claim',
  `INSERT INTO trivet.idempotency_key (tenant_id, user_id, key, claim, sealed) VALUES ($1, $2, $3, $4, $5)
   ON CONFLICT (tenant_id, user_id, key) DO NOTHING RETURNING claim`,
);
const READ = sql(
  'idempotency_read',
  `SELECT status, sealed, created_at < now() - ${KEPT} AS expired, claimed_at < now() - ${DEAD} AS dead
     FROM trivet.idempotency_key WHERE tenant_id = $1 AND user_id = $2 AND key = $3 FOR UPDATE`,
);
const TAKE_OVER = sql(
  'idempotency_take_over',
  `UPDATE trivet.idempotency_key SET claim = $4, sealed = $5, status = NULL, claimed_at = now(), created_at = now()
    WHERE tenant_id = $1 AND user_id = $2 AND key = $3`,
);
const RENEW = sql(
  'idempotency_renew',
  'UPDATE trivet.idempotency_key SET claimed_at = now() WHERE tenant_id = $1 AND user_id = $2 AND key = $3 AND claim = $4',
);
const KEEP = sql(
  'idempotency_keep',
  `UPDATE trivet.idempotency_key SET status = $5, sealed = $6
    WHERE tenant_id = $1 AND user_id = $2 AND key = $3 AND claim = $4`,
);
const RELEASE = sql(
  'idempotency_release',
  'DELETE FROM trivet.idempotency_key WHERE tenant_id = $1 AND user_id = $2 AND key = $3 AND claim = $4',
);
const PRUNE = sql(
  'idempotency_prune',
  `DELETE FROM trivet.idempotency_key
    WHERE tenant_id = $1
      AND (user_id, key) IN (SELECT user_id, key FROM trivet.idempotency_key
                              WHERE tenant_id = $1 AND created_at < now() - ${KEPT}
                              ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING 1`,
);

const TENANTS = sql('idempotency_tenants', 'SELECT tenant_id AS "tenantId" FROM trivet.list_tenants()');

interface Row {
  status: number | null;
  sealed: Buffer;
  expired: boolean;
  dead: boolean;
}

interface Content {
  /** Base64. */
  request: string;
  answer?: Omit<KeptAnswer, 'status'>;
}

export const placeOfKey = ({ tenantId, userId, key }: KeyOwner): SecretPlace => ({
  tenantId,
  table: 'idempotency_key',
  rowId: `${userId} ${key}`,
  column: 'sealed',
});

export class StoredIdempotencyKeys implements IdempotencyKeys {
  constructor(
    private readonly database: Database,
    private readonly secrets: SecretBox,
  ) {}

  async take(owner: KeyOwner, request: Buffer): Promise<KeyState> {
    const { tenantId, userId, key } = owner;
    const claim = uuidv7();
    const mine = [tenantId, userId, key, claim, this.seal(owner, { request: request.toString('base64') })];
    return this.database.withTenant<KeyState>(tenantId, async tx => {
      const [made] = await tx.query(CLAIM, mine);
      if (made) {
        await tx.commit([PRUNE, [tenantId, 100]]);
        return { claim: this.claim(owner, claim, request) };
      }
      // Gone in between: whoever had it has released it.
      const [row] = await tx.query<Row>(READ, [tenantId, userId, key]);
      if (!row) return 'under_way';
      const used = this.judge(owner, row, request);
      if (used) return used;
      await tx.commit([TAKE_OVER, mine]);
      return { claim: this.claim(owner, claim, request) };
    });
  }

  /** Undefined: the key is free again. */
  private judge(owner: KeyOwner, { status, sealed, expired, dead }: Row, request: Buffer): KeyState | undefined {
    const content = expired ? undefined : this.open(owner, sealed);
    if (!content) return undefined;
    if (!timingSafeEqual(Buffer.from(content.request, 'base64'), request)) return 'other_request';
    if (status !== null) return { answer: { status, ...content.answer! } };
    return dead ? undefined : 'under_way';
  }

  private claim(owner: KeyOwner, claim: string, request: Buffer): KeyClaim {
    const { tenantId, userId, key } = owner;
    const mine = [tenantId, userId, key, claim];
    const alive = setInterval(() => {
      this.database
        .withTenant(tenantId, tx => tx.query(RENEW, mine))
        .catch(error => log.warn({ err: error }, 'a call under way could not say that it lives'));
    }, ALIVE_MS).unref();
    const end = async (statement: typeof KEEP, values: readonly unknown[]): Promise<void> => {
      clearInterval(alive);
      await this.database.withTenant(tenantId, tx => tx.query(statement, values));
    };
    return {
      keep: ({ status, ...answer }) =>
        end(KEEP, [...mine, status, this.seal(owner, { request: request.toString('base64'), answer })]),
      release: () => end(RELEASE, mine),
    };
  }

  private seal(owner: KeyOwner, content: Content): Buffer {
    return encodeSealed(this.secrets.seal(JSON.stringify(content), placeOfKey(owner)));
  }

  /** Undefined: sealed with a key that is no more. */
  private open(owner: KeyOwner, sealed: Buffer): Content | undefined {
    try {
      return JSON.parse(this.secrets.openText(decodeSealed(sealed), placeOfKey(owner)));
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      log.warn({ reason: error.message }, 'a kept answer does not open');
      return undefined;
    }
  }
}

const PORTION = 1_000;

/** Answers hold secrets, and none stays longer than its day where nobody calls any more. A periodic task. */
export const forgetAnswers = (database: Database) => ({
  name: 'idempotency-keys',
  everyMs: 3_600_000,
  scope: 'appliance' as const,
  run: async (signal: AbortSignal): Promise<'more' | undefined> => {
    let left = false;
    for (const { tenantId } of await database.engine<{ tenantId: string }>(TENANTS)) {
      if (signal.aborted) return undefined;
      const gone = await database.withTenant(tenantId, tx => tx.query(PRUNE, [tenantId, PORTION]));
      left ||= gone.length === PORTION;
    }
    return left ? 'more' : undefined;
  },
});
