import { type Database, isUniqueViolation } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { isUuid, uuidv7 } from '#platform/uuid';
import { type Actor, auditWrite } from '#tenancy/audit-log/audit-log';
import { showLoginName } from '#tenancy/credentials/login-name';
import { hashOfToken, newToken } from '#tenancy/credentials/secret-tokens';
import {
  CHALLENGE_SECONDS,
  challengeIn,
  creationOptions,
  hashOfChallenge,
  madePasskey,
  newChallenge,
  type PasskeyMade,
  type PasskeyProof,
  PasskeyUnproved,
  provedCounter,
  relyingParty,
  requestOptions,
} from '#tenancy/factors/passkey-protocol';
import type { LoginOrigin, OpenedLogin, Principal } from '#tenancy/logins/admin-directory';
import { type AdminLogins, LOGIN_MS, loginEntry, REAP_LOGINS, shownAgent } from '#tenancy/logins/admin-logins';
import type { FactorChanges, StepUp } from '#tenancy/logins/factor-changes';
import { LoginThrottle } from '#tenancy/logins/login-throttle';
import { CodeNeeded } from '#tenancy/logins/password-logins';
import { TenantSuspended } from '#tenancy/tenants/suspended-tenants';

/** Of a user: enough for every device, and no more to look through. */
const MOST = 20;

/** Logins that are begun and neither ended nor over, of all the appliance: a page begins one by a click. */
const MOST_BEGUN = 10_000;

const BEGIN = sql('passkey_begin', 'SELECT trivet.passkey_begin($1, $2, $3, $4, $5) AS begun');
const TAKE = sql('passkey_take', 'SELECT user_version::double precision AS version FROM trivet.passkey_take($1, $2)');
const USER = sql(
  'passkey_user',
  `SELECT version::double precision AS version, totp_since IS NOT NULL AS "asksCode"
     FROM trivet.tenant_user WHERE tenant_id = $1 AND id = $2 AND state = 'active'`,
);
const LOCK_USER = sql(
  'passkey_lock_user',
  `SELECT totp_since IS NOT NULL AS "asksCode" FROM trivet.tenant_user WHERE tenant_id = $1 AND id = $2 FOR UPDATE`,
);
const FIND = sql(
  'passkey_find',
  `SELECT tenant_id AS "tenantId", tenant_name AS tenant, tenant_state AS "tenantState", user_id AS "userId",
          user_name AS "user", id, public_key AS "publicKey", counter::double precision AS counter
     FROM trivet.find_passkey($1)`,
);
const LIST = sql(
  'passkey_list',
  `SELECT id, name, credential_id AS "credentialId", created_at AS "createdAt", last_used_at AS "lastUsedAt"
     FROM trivet.passkey WHERE tenant_id = $1 AND user_id = $2 ORDER BY id`,
);
/** The lock keeps the number. A user who was changed since it was begun adds nothing: the password may be another, or factors reset. */
const ADD = sql(
  'passkey_add',
  `WITH owner AS (SELECT id FROM trivet.tenant_user
                   WHERE tenant_id = $1 AND id = $3 AND state = 'active' AND version = $8 FOR UPDATE)
   INSERT INTO trivet.passkey (tenant_id, id, user_id, name, credential_id, public_key, counter)
   SELECT $1, $2, owner.id, $4, $5, $6, $7 FROM owner
   RETURNING id, name, created_at AS "createdAt", last_used_at AS "lastUsedAt"`,
);
const COUNT = sql(
  'passkey_count',
  'SELECT count(*)::integer AS count FROM trivet.passkey WHERE tenant_id = $1 AND user_id = $2',
);
const REMOVE = sql(
  'passkey_remove',
  'DELETE FROM trivet.passkey WHERE tenant_id = $1 AND id = $2 AND user_id = $3 RETURNING name',
);
/** The device may be lost, and nothing tells which logins are its own. */
const END_LOGINS = sql(
  'passkey_end_logins',
  `DELETE FROM trivet.admin_token
    WHERE tenant_id = $1 AND user_id = $2 AND kind = 'session' AND opened_by = 'passkey' AND id <> $3`,
);
/** A counter that does not grow is that of a copy; authenticators that do not count say 0 always. */
const USE = sql(
  'passkey_use',
  `UPDATE trivet.passkey SET counter = $3, last_used_at = now()
    WHERE tenant_id = $1 AND id = $2 AND (counter < $3 OR (counter = 0 AND $3 = 0)) RETURNING id`,
);
/** The row lock and the condition: a user who is disabled meanwhile opens nothing. */
const OPEN = sql(
  'passkey_open',
  `INSERT INTO trivet.admin_token (tenant_id, id, user_id, kind, name, role, token_hash, address, expires_at, user_agent,
                                   opened_by)
   SELECT $1, $2, u.id, 'session', '', u.role, $4, $5, now() + $6 * interval '1 ms', $7, 'passkey'
     FROM trivet.tenant_user u
    WHERE u.tenant_id = $1 AND u.id = $3 AND u.state = 'active'
      FOR SHARE OF u
   RETURNING id`,
);

export interface PasskeyView {
  id: string;
  name: string;
  createdAt: Date;
  lastUsedAt: Date | null;
}

interface Found {
  tenantId: string;
  tenant: string;
  tenantState: string;
  userId: string;
  user: string;
  id: string;
  publicKey: Buffer;
  counter: number;
}

type Owner = Pick<Principal, 'tenantId' | 'tenant' | 'userId' | 'username'>;

interface Options {
  database: Database;
  logins: Pick<AdminLogins, 'authenticate' | 'forget'>;
  changes: Pick<FactorChanges, 'stepUp'>;
  /** Where browsers reach the gateways. */
  publicUrl: string | undefined;
}

/**
 * Passkeys (WebAuthn): added and removed with the password and, where one is asked for, a code; each is a login by itself,
 * since its authenticator has verified who holds it. Challenges are kept here, good once and for five minutes.
 */
export class Passkeys {
  private readonly throttle: LoginThrottle;

  constructor(private readonly options: Options) {
    this.throttle = new LoginThrottle(options.database);
  }

  /** The host name that passkeys are of; undefined: there are none here. */
  get host(): string | undefined {
    try {
      return relyingParty(this.options.publicUrl).id;
    } catch {
      return undefined;
    }
  }

  list({ tenantId, userId }: Pick<Owner, 'tenantId' | 'userId'>): Promise<(PasskeyView & { credentialId: Buffer })[]> {
    return this.options.database.withTenant(tenantId, tx => tx.query(LIST, [tenantId, userId]));
  }

  /** `failed_precondition`: there is no public address with a name, or there are as many as one may have. */
  async beginAdding(actor: Actor, owner: Owner, given: Partial<StepUp> & { password: string }): Promise<object> {
    const party = relyingParty(this.options.publicUrl);
    const proved = await this.options.changes.stepUp(actor, owner, given);
    const { tenantId, userId } = owner;
    const [user] = await this.options.database.withTenant(tenantId, tx =>
      tx.query<{ version: number; asksCode: boolean }>(USER, [tenantId, userId]),
    );
    if (!user) throw new PasskeyUnproved();
    if (user.asksCode && proved === undefined) throw new CodeNeeded();
    const known = await this.list(owner);
    if (known.length >= MOST) throw tooMany();
    const challenge = await this.begin(userId, user.version);
    const ids = known.map(({ credentialId }) => credentialId);
    return creationOptions(party, challenge, { id: owner.userId, name: owner.username }, ids);
  }

  async add(actor: Actor, owner: Owner, name: string, made: PasskeyMade): Promise<PasskeyView> {
    const party = relyingParty(this.options.publicUrl);
    const { challenge, version } = await this.take(made.clientData, owner.userId);
    const { credentialId, publicKey, counter } = await madePasskey(party, challenge, made);
    const { tenantId, userId } = owner;
    try {
      return await this.options.database.withTenant(tenantId, async tx => {
        const values = [tenantId, uuidv7(), userId, name, credentialId, publicKey, counter, version];
        const [added] = await tx.query<PasskeyView>(ADD, values);
        if (!added) throw new PasskeyUnproved();
        const [row] = await tx.query<{ count: number }>(COUNT, [tenantId, userId]);
        if (row!.count > MOST) throw tooMany();
        const entry = loginEntry('user.add-factor', owner, { factor: 'passkey', passkey: added.id, named: name });
        await tx.commit(auditWrite(actor, entry));
        return added;
      });
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw new StorageError('already_exists', 'you have a passkey of this name, or this one, already', {
        cause: error,
        field: 'name',
      });
    }
  }

  /** Ends all logins by passkeys of the user, too, but for the caller's own. */
  async remove(
    actor: Actor,
    owner: Owner & Pick<Principal, 'id'>,
    id: string,
    given: Partial<StepUp> & { password: string },
  ): Promise<void> {
    const { database, changes, logins } = this.options;
    const proved = await changes.stepUp(actor, owner, given);
    const { tenantId, userId } = owner;
    await database.withTenant(tenantId, async tx => {
      const [gone] = isUuid(id) ? await tx.query<{ name: string }>(REMOVE, [tenantId, id, userId]) : [];
      if (!gone) throw new StorageError('not_found', 'you have no such passkey', { resource: 'passkey' });
      // After the passkey, as a login by it takes its locks.
      const [user] = await tx.query<{ asksCode: boolean }>(LOCK_USER, [tenantId, userId]);
      if (user?.asksCode && proved === undefined) throw new CodeNeeded();
      const entry = loginEntry('user.remove-factor', owner, { factor: 'passkey', passkey: id, named: gone.name });
      await tx.commit([END_LOGINS, [tenantId, userId, owner.id]], auditWrite(actor, entry));
    });
    logins.forget(other => other.userId === userId && other.id !== owner.id);
  }

  /** What a browser is asked to sign, of nobody yet. Throws LoginThrottled; `unavailable`: too many have begun. */
  async beginLogin({ address }: Pick<LoginOrigin, 'address'>): Promise<object> {
    const party = relyingParty(this.options.publicUrl);
    await this.throttle.checkAddress(address);
    return requestOptions(party, await this.begin(null, null));
  }

  /** Throws LoginThrottled, PasskeyUnproved (all alike for unknown, wrong and disabled), TenantSuspended. */
  async login(proof: PasskeyProof, origin: LoginOrigin): Promise<OpenedLogin> {
    const party = relyingParty(this.options.publicUrl);
    const { address } = origin;
    await this.throttle.checkAddress(address);
    let known: Found | undefined;
    try {
      const { challenge } = await this.take(proof.clientData, null);
      const credential = Buffer.from(proof.id, 'base64url');
      [known] = await this.options.database.call<Found>(FIND, [credential]);
      if (!known) throw new PasskeyUnproved();
      const counter = await provedCounter(party, challenge, proof, known);
      return await this.open(known, counter, origin);
    } catch (error) {
      if (error instanceof PasskeyUnproved) await this.throttle.failedFrom(address);
      if (known && (error instanceof PasskeyUnproved || error instanceof TenantSuspended))
        await this.note(known, address);
      throw error;
    }
  }

  private async open(known: Found, counter: number, origin: LoginOrigin): Promise<OpenedLogin> {
    const { database, logins } = this.options;
    const { tenantId, userId } = known;
    if (known.tenantState !== 'active') throw new TenantSuspended(known.tenant, known.tenantState);
    const user = { ...known, username: showLoginName(known) };
    const token = newToken();
    await database.withTenant(tenantId, async tx => {
      if ((await tx.query(USE, [tenantId, known.id, counter])).length === 0) throw new PasskeyUnproved();
      const opened = [hashOfToken(token), origin.address, LOGIN_MS, shownAgent(origin.userAgent)];
      if ((await tx.query(OPEN, [tenantId, uuidv7(), userId, ...opened])).length === 0) throw new PasskeyUnproved();
      const by: Actor = { kind: 'user', name: user.username, address: origin.address };
      await tx.commit(
        [REAP_LOGINS, [tenantId]],
        auditWrite(by, loginEntry('session.login', user, { proved: 'passkey', passkey: known.id })),
      );
    });
    const principal = await logins.authenticate(token);
    if (!principal) throw new PasskeyUnproved();
    return { principal, token };
  }

  /** A login is refused whether or not this can be written. */
  private async note(known: Found, address: string): Promise<void> {
    const user = { ...known, username: showLoginName(known) };
    const entry = loginEntry('session.refused', user, { proved: 'passkey', passkey: known.id });
    const [statement, values] = auditWrite({ kind: 'user', name: user.username, address }, entry);
    await this.options.database.withTenant(known.tenantId, tx => tx.query(statement, values)).catch(() => {});
  }

  private async begin(userId: string | null, version: number | null): Promise<Buffer> {
    const challenge = newChallenge();
    const values = [hashOfChallenge(challenge), userId, version, CHALLENGE_SECONDS, MOST_BEGUN];
    const [row] = await this.options.database.call<{ begun: boolean }>(BEGIN, values);
    if (!row!.begun)
      throw new StorageError('unavailable', 'too many logins by passkeys are begun: try again in a few minutes');
    return challenge;
  }

  /** Before anything is verified: one answer is one try. */
  private async take(
    clientData: string,
    userId: string | null,
  ): Promise<{ challenge: Buffer; version: number | null }> {
    const challenge = challengeIn(clientData);
    const values = [hashOfChallenge(challenge), userId];
    const [row] = await this.options.database.call<{ version: number | null }>(TAKE, values);
    if (!row) throw new PasskeyUnproved();
    return { challenge, version: row.version };
  }
}

const tooMany = (): StorageError =>
  new StorageError('failed_precondition', `you have ${MOST} passkeys: remove one that you do not use any more`);
