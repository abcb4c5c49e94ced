import { decodeSealed, encodeSealed, type SecretBox, type SecretPlace } from '#platform/crypto/secrets';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { hashOfRecoveryCode, isTotpCode, newRecoveryCodes, stepOfCode } from '#tenancy/factors/totp-codes';

/** How a code was proved; undefined: it was not. */
export type ProvedBy = 'totp' | 'recovery' | undefined;

/** A user by both its ids. */
export interface FactorOwner {
  tenantId: string;
  userId: string;
}

/** How wrong codes are counted, in the transaction that compares them; `check` throws to refuse. */
export interface CountedTries {
  check(tx: Tx): Promise<void>;
  failed(tx: Tx): Promise<void>;
}

/** The lock: of two gateways that are sent one code the second waits, and finds it used. */
const LOCK = sql(
  'factor_lock',
  `SELECT f.used_step::double precision AS "usedStep", s.sealed
     FROM trivet.user_totp f
     LEFT JOIN trivet.secret s
       ON s.tenant_id = f.tenant_id AND s.owner_table = 'user_totp' AND s.owner_id = f.user_id AND s.name = 'secret'
    WHERE f.tenant_id = $1 AND f.user_id = $2 FOR UPDATE OF f`,
);
const USE = sql('factor_use', 'UPDATE trivet.user_totp SET used_step = $3 WHERE tenant_id = $1 AND user_id = $2');
const USE_RECOVERY = sql(
  'factor_use_recovery',
  'DELETE FROM trivet.recovery_code WHERE tenant_id = $1 AND user_id = $2 AND code_hash = $3 RETURNING user_id',
);
const PUT_SECRET = sql(
  'factor_put_secret',
  `INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed) VALUES ($1, 'user_totp', $2, 'secret', $3)
   ON CONFLICT (tenant_id, owner_table, owner_id, name) DO UPDATE SET sealed = excluded.sealed`,
);
const CLEAR_RECOVERY = sql(
  'factor_clear_recovery',
  'DELETE FROM trivet.recovery_code WHERE tenant_id = $1 AND user_id = $2',
);
const PUT_RECOVERY = sql(
  'factor_put_recovery',
  'INSERT INTO trivet.recovery_code (tenant_id, user_id, code_hash) SELECT $1, $2, unnest($3::bytea[])',
);
const FORGET = sql(
  'factor_forget',
  `WITH secret AS (
     DELETE FROM trivet.secret WHERE tenant_id = $1 AND owner_table = 'user_totp' AND owner_id = $2),
   code AS (DELETE FROM trivet.recovery_code WHERE tenant_id = $1 AND user_id = $2)
   DELETE FROM trivet.user_totp WHERE tenant_id = $1 AND user_id = $2`,
);

const placeOf = ({ tenantId, userId }: FactorOwner): SecretPlace => ({
  tenantId,
  table: 'user_totp',
  rowId: userId,
  column: 'secret',
});

/** Rows and secrets of second factors; who may change them is said by `FactorChanges`. */
export class SecondFactors {
  constructor(
    private readonly database: Database,
    private readonly secrets: SecretBox,
  ) {}

  /**
   * Uses the code up, in a transaction of its own: it is gone also when what follows fails. A wrong one is counted in it, so of
   * guesses at many gateways each waits for the one before. Throws LoginThrottled.
   */
  prove(owner: FactorOwner, code: string, tries: CountedTries): Promise<ProvedBy> {
    return this.database.withTenant(owner.tenantId, async tx => {
      await tx.query(LOCK, [owner.tenantId, owner.userId]);
      await tries.check(tx);
      const proved = await this.proveIn(tx, owner, code);
      if (proved === undefined) await tries.failed(tx);
      return proved;
    });
  }

  /** A six-digit code or a recovery code, by its form. */
  async proveIn(tx: Tx, owner: FactorOwner, code: string): Promise<ProvedBy> {
    const { tenantId, userId } = owner;
    if (!isTotpCode(code)) {
      const hash = hashOfRecoveryCode(code);
      if (!hash) return undefined;
      return (await tx.query(USE_RECOVERY, [tenantId, userId, hash])).length > 0 ? 'recovery' : undefined;
    }
    const [row] = await tx.query<{ usedStep: number; sealed: Buffer | null }>(LOCK, [tenantId, userId]);
    // Without its secret, as after a lost key file, recovery codes are left.
    if (!row?.sealed) return undefined;
    const secret = this.secrets.openText(decodeSealed(row.sealed), placeOf(owner));
    const step = stepOfCode(secret, code, row.usedStep);
    if (step === undefined) return undefined;
    await tx.query(USE, [tenantId, userId, step]);
    return 'totp';
  }

  async keepSecret(tx: Tx, owner: FactorOwner, secret: string): Promise<void> {
    const sealed = encodeSealed(this.secrets.seal(secret, placeOf(owner)));
    await tx.query(PUT_SECRET, [owner.tenantId, owner.userId, sealed]);
  }

  /** In the place of all before. The codes are kept nowhere. */
  async renewRecovery(tx: Tx, { tenantId, userId }: FactorOwner): Promise<string[]> {
    const codes = newRecoveryCodes();
    await tx.query(CLEAR_RECOVERY, [tenantId, userId]);
    await tx.query(PUT_RECOVERY, [tenantId, userId, codes.map(code => hashOfRecoveryCode(code)!)]);
    return codes;
  }
}

/** All that a user has besides its password; the caller says in the user's row that no code is asked for. */
export async function forgetFactors(tx: Tx, { tenantId, userId }: FactorOwner): Promise<void> {
  await tx.query(FORGET, [tenantId, userId]);
}
