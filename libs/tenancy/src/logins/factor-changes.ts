import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import { type Actor, auditWrite } from '#tenancy/audit-log/audit-log';
import { showLoginName } from '#tenancy/credentials/login-name';
import { type FactorOwner, forgetFactors, type ProvedBy, type SecondFactors } from '#tenancy/factors/second-factors';
import { newTotpSecret, totpUri } from '#tenancy/factors/totp-codes';
import type { Principal } from '#tenancy/logins/admin-directory';
import { type AdminLogins, loginEntry } from '#tenancy/logins/admin-logins';
import { LoginThrottle } from '#tenancy/logins/login-throttle';
import { CodeNeeded } from '#tenancy/logins/password-logins';
import type { TenantRef } from '#tenancy/users/user-directory';

/** An enrolment that was begun is to be proved within. */
const PROOF_MINUTES = 15;

const VIEW = sql(
  'factors_view',
  `SELECT u.totp_since AS "totpSince",
          (SELECT count(*)::integer FROM trivet.recovery_code c WHERE c.tenant_id = $1 AND c.user_id = $2) AS "recoveryCodes"
     FROM trivet.tenant_user u WHERE u.tenant_id = $1 AND u.id = $2`,
);
/** Opening a login waits for it, and sees what was done under it. */
const LOCK_USER = sql(
  'factors_lock_user',
  'SELECT totp_since AS "totpSince" FROM trivet.tenant_user WHERE tenant_id = $1 AND id = $2 FOR UPDATE',
);
/** After the lock, in a statement of its own: one that waited sees what was there before it did. */
const DRIVERS = sql(
  'factors_drivers',
  'SELECT FROM trivet.session_token WHERE tenant_id = $1 AND user_id = $2 AND expires_at > now() LIMIT 1',
);
const LOCK_NAMED = sql(
  'factors_lock_named',
  `SELECT id, totp_since AS "totpSince" FROM trivet.tenant_user WHERE tenant_id = $1 AND name = $2 FOR UPDATE`,
);
const BEGIN = sql(
  'factors_begin',
  `INSERT INTO trivet.user_totp (tenant_id, user_id) VALUES ($1, $2)
   ON CONFLICT (tenant_id, user_id) DO UPDATE SET used_step = 0, begun_at = now()`,
);
const BEGUN = sql(
  'factors_begun',
  `SELECT FROM trivet.user_totp WHERE tenant_id = $1 AND user_id = $2
      AND begun_at > now() - $3 * interval '1 minute'`,
);
const ASK_CODE = sql(
  'factors_ask_code',
  `UPDATE trivet.tenant_user SET totp_since = CASE WHEN $3 THEN now() END, version = version + 1, updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);
const FORGET_PASSKEYS = sql(
  'factors_forget_passkeys',
  'DELETE FROM trivet.passkey WHERE tenant_id = $1 AND user_id = $2 RETURNING id',
);
const END_LOGINS = sql(
  'factors_end_logins',
  `DELETE FROM trivet.admin_token
    WHERE tenant_id = $1 AND user_id = $2 AND kind = 'session' AND id IS DISTINCT FROM $3`,
);

export interface FactorsView {
  /** null: a password is enough. */
  totpSince: Date | null;
  /** That are left. */
  recoveryCodes: number;
}

/** To be shown once. */
export interface BegunTotp {
  /** In base32. */
  secret: string;
  /** `otpauth://`, for a QR code. */
  uri: string;
}

export interface StepUp {
  password: string;
  /** Six digits, or a recovery code. */
  code: string;
}

interface Options {
  database: Database;
  logins: Pick<AdminLogins, 'verifyAgain' | 'forget'>;
  factors: SecondFactors;
  /** Tells this appliance's entry in an app from another's. */
  issuer: string;
}

type Owner = Pick<Principal, 'tenantId' | 'tenant' | 'userId' | 'username'>;

/**
 * Second factors of users: begun with the password, proved with a code, taken away with both. A login that was left open, and
 * an API token, change nothing here by themselves. Wrong passwords and codes count as those of a login do.
 */
export class FactorChanges {
  constructor(private readonly options: Options) {}

  async view({ tenantId, userId }: FactorOwner): Promise<FactorsView> {
    const rows = await this.options.database.withTenant(tenantId, tx =>
      tx.query<FactorsView>(VIEW, [tenantId, userId]),
    );
    return rows[0]!;
  }

  /** Nothing is asked for yet. `failed_precondition`: it is asked for already, or drivers log in as this user. */
  async begin(actor: Actor, owner: Owner, password: string): Promise<BegunTotp> {
    const { database, logins, factors, issuer } = this.options;
    // Of whoever has one it is refused below, in plain words.
    const { username } = owner;
    await logins.verifyAgain({ username, password, address: actor.address }, async () => 'totp');
    const secret = newTotpSecret();
    await database.withTenant(owner.tenantId, async tx => {
      await lockWithout(tx, owner);
      await tx.query(BEGIN, [owner.tenantId, owner.userId]);
      await factors.keepSecret(tx, owner, secret);
      await tx.commit(auditWrite(actor, loginEntry('user.begin-factor', owner, { factor: 'totp' })));
    });
    return { secret, uri: totpUri(secret, issuer, owner.username) };
  }

  /** From now on it is asked for, and every login but `spared` has ended. Gives the recovery codes, this once. */
  async confirm(actor: Actor, owner: Owner, code: string, spared: string): Promise<string[]> {
    const { tenantId, userId } = owner;
    const tries = LoginThrottle.triesOf(owner.username, actor.address);
    const codes = await this.options.database.withTenant(tenantId, async tx => {
      await lockWithout(tx, owner);
      await tries.check(tx);
      if ((await tx.query(BEGUN, [tenantId, userId, PROOF_MINUTES])).length === 0)
        throw new StorageError('failed_precondition', 'no second factor was begun, or too long ago: begin again');
      if ((await this.options.factors.proveIn(tx, owner, code)) !== 'totp') {
        await tries.failed(tx);
        return undefined;
      }
      const made = await this.options.factors.renewRecovery(tx, owner);
      await tx.query(ASK_CODE, [tenantId, userId, true]);
      await tx.commit(
        [END_LOGINS, [tenantId, userId, spared]],
        auditWrite(actor, loginEntry('user.add-factor', owner, { factor: 'totp' })),
      );
      return made;
    });
    // Not in the transaction, which keeps the count.
    if (!codes) throw invalid('code', 'it is not the code that the app shows now; is the clock of its device right?');
    this.options.logins.forget(other => other.userId === userId && other.id !== spared);
    return codes;
  }

  /** In the place of those before, which are refused from now on. */
  async renewRecovery(actor: Actor, owner: Owner, given: StepUp): Promise<string[]> {
    const proved = await this.stepUp(actor, owner, given);
    return this.options.database.withTenant(owner.tenantId, async tx => {
      await lockWith(tx, owner, proved);
      const made = await this.options.factors.renewRecovery(tx, owner);
      await tx.commit(auditWrite(actor, loginEntry('user.renew-recovery-codes', owner)));
      return made;
    });
  }

  async remove(actor: Actor, owner: Owner, given: StepUp): Promise<void> {
    const proved = await this.stepUp(actor, owner, given);
    await this.options.database.withTenant(owner.tenantId, async tx => {
      await lockWith(tx, owner, proved);
      await forgetFactors(tx, owner);
      await tx.query(ASK_CODE, [owner.tenantId, owner.userId, false]);
      await tx.commit(auditWrite(actor, loginEntry('user.remove-factor', owner, { factor: 'totp' })));
    });
  }

  /** As `resetFactors`; not of oneself, which would be a way round the code: `permission_denied`. */
  async reset(actor: Actor, tenant: TenantRef, user: string, self: string): Promise<void> {
    const check = (userId: string) => {
      if (userId !== self) return;
      throw new StorageError(
        'permission_denied',
        'your own second factor goes with a code of it, on the account page; or another administrator resets it',
      );
    };
    const userId = await resetFactors(this.options.database, actor, tenant, user, check);
    this.options.logins.forget(other => other.userId === userId);
  }

  /**
   * The password and, where one is asked for, a fresh code: a login that was left open proves neither. Whoever changes something
   * by it then looks under the lock of the user's row whether a code was proved, if one is asked for by now.
   */
  async stepUp(
    actor: Actor,
    owner: Owner,
    { password, code }: Partial<StepUp> & { password: string },
  ): Promise<ProvedBy> {
    const { logins, factors } = this.options;
    const { username } = owner;
    const known = await logins.verifyAgain({ username, password, address: actor.address }, async (of, tries) => {
      if (code === undefined) throw new CodeNeeded();
      return factors.prove(of, code, tries);
    });
    return known.provedBy;
  }
}

async function lockWithout(tx: Tx, { tenantId, userId }: FactorOwner): Promise<void> {
  const [user] = await tx.query<{ totpSince: Date | null }>(LOCK_USER, [tenantId, userId]);
  if (user?.totpSince)
    throw new StorageError('failed_precondition', 'a code is asked for already: remove that second factor first');
  if ((await tx.query(DRIVERS, [tenantId, userId])).length > 0)
    throw new StorageError(
      'failed_precondition',
      'drivers log in as this user, and cannot send a code: let them have a user of their own first',
    );
}

/** CodeNeeded: the factor is newer than what was proved before the lock. */
async function lockWith(tx: Tx, { tenantId, userId }: FactorOwner, proved: ProvedBy): Promise<void> {
  const [user] = await tx.query<{ totpSince: Date | null }>(LOCK_USER, [tenantId, userId]);
  if (!user?.totpSince)
    throw new StorageError('failed_precondition', 'no code is asked for: there is no second factor');
  if (proved === undefined) throw new CodeNeeded();
}

/**
 * Of somebody who has lost them: the password alone counts again, and all logins end. Gives the user's id. `check` throws to
 * refuse. Nobody of that name: `not_found`.
 */
export function resetFactors(
  database: Database,
  actor: Actor,
  { id: tenantId, name: tenant }: TenantRef,
  user: string,
  check: (userId: string) => void = () => {},
): Promise<string> {
  return database.withTenant(tenantId, async tx => {
    const [row] = await tx.query<{ id: string; totpSince: Date | null }>(LOCK_NAMED, [tenantId, user]);
    if (!row) throw new StorageError('not_found', `tenant ${tenant} has no user ${user}`);
    check(row.id);
    const owner = { tenantId, tenant, userId: row.id, username: showLoginName({ tenant, user }) };
    await forgetFactors(tx, owner);
    const passkeys = await tx.query(FORGET_PASSKEYS, [tenantId, row.id]);
    const had = [...(row.totpSince ? ['totp'] : []), ...(passkeys.length > 0 ? ['passkey'] : [])];
    // Always: passkeys whose addition was begun before end by the version.
    await tx.query(ASK_CODE, [tenantId, row.id, false]);
    await tx.commit(
      [END_LOGINS, [tenantId, row.id, null]],
      auditWrite(actor, loginEntry('user.reset-factors', owner, { had })),
    );
    return row.id;
  });
}
