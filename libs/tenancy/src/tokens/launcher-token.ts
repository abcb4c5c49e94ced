import { source } from '#platform/database/database';
import { uuidv7 } from '#platform/uuid';
import { auditWrite } from '#tenancy/audit-log/audit-log';
import { showLoginName } from '#tenancy/credentials/login-name';
import { hashOfToken, newToken } from '#tenancy/credentials/secret-tokens';
import { BY_MIGRATE, FIRST_ADMIN } from '#tenancy/users/first-user';

/** Of the API token that commands on the appliance's own host use. */
const LAUNCHER_TOKEN = 'launcher';

/** Whether it is that one: its secret is in the credentials file, which `migrate` alone writes. */
export const isLaunchers = (tenant: { name: string }, token: { name: string; user: string }): boolean =>
  tenant.name === FIRST_ADMIN.tenant && token.user === FIRST_ADMIN.name && token.name === LAUNCHER_TOKEN;

/**
 * An API token of the first administrator for the credentials file of a home: `known` if it still opens everything, else a
 * new one in place of the last. Undefined when there is no such administrator any more. Works as the owner role, for
 * `migrate` alone.
 */
export async function ensureLauncherToken(ownerUrl: string, known: string | undefined): Promise<string | undefined> {
  const owner = source(ownerUrl, 'trivet:setup', 1);
  await owner.initialize();
  try {
    return await owner.transaction(async tx => {
      const [user]: { tenantId: string; id: string }[] = await tx.query(
        `SELECT u.tenant_id AS "tenantId", u.id FROM trivet.tenant_user u
           JOIN trivet.tenant t ON t.id = u.tenant_id AND t.name = $1
          WHERE u.name = $2 AND u.role = 'admin' AND u.state = 'active' FOR UPDATE OF u`,
        [FIRST_ADMIN.tenant, FIRST_ADMIN.name],
      );
      if (!user) return undefined;
      const { tenantId, id: userId } = user;
      if (known !== undefined) {
        const opens = await tx.query(
          `SELECT FROM trivet.admin_token
            WHERE tenant_id = $1 AND user_id = $2 AND kind = 'token' AND role = 'admin' AND token_hash = $3
              AND (expires_at IS NULL OR expires_at > now())`,
          [tenantId, userId, hashOfToken(known)],
        );
        if (opens.length > 0) return known;
      }
      const token = newToken();
      const id = uuidv7();
      await tx.query(
        `DELETE FROM trivet.admin_token WHERE tenant_id = $1 AND user_id = $2 AND kind = 'token' AND name = $3`,
        [tenantId, userId, LAUNCHER_TOKEN],
      );
      await tx.query(
        `INSERT INTO trivet.admin_token (tenant_id, id, user_id, kind, name, role, token_hash)
         VALUES ($1, $2, $3, 'token', $4, 'admin', $5)`,
        [tenantId, id, userId, LAUNCHER_TOKEN, hashOfToken(token)],
      );
      const [{ text }, values] = auditWrite(BY_MIGRATE, {
        tenantId,
        tenantName: FIRST_ADMIN.tenant,
        action: 'token.create',
        subject: { kind: 'token', id, name: LAUNCHER_TOKEN },
        after: {
          name: LAUNCHER_TOKEN,
          user: showLoginName({ tenant: FIRST_ADMIN.tenant, user: FIRST_ADMIN.name }),
          role: 'admin',
        },
      });
      await tx.query(text, [...values]);
      return token;
    });
  } finally {
    await owner.destroy();
  }
}
