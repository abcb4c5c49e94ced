import type { EntityManager } from 'typeorm';
import { ConfigError, readSecretFile } from '#platform/config/config';
import { uuidv7 } from '#platform/uuid';
import { auditWrite } from '#tenancy/audit-log/audit-log';
import { ADMIN_USER, APPLIANCE_TENANT, CSP_USER, DEFAULT_TENANT, showLoginName } from '#tenancy/credentials/login-name';
import { Passwords, requirePassword } from '#tenancy/credentials/passwords';
import type { Role } from '#tenancy/users/roles';

/** A user that `migrate` makes, with the password of a file that a setting names. */
interface FirstUser {
  tenant: string;
  name: string;
  role: Role;
  setting: string;
}

/** For the driver. */
export const FIRST_CSP_USER: FirstUser = {
  tenant: DEFAULT_TENANT,
  name: CSP_USER,
  role: 'operator',
  setting: 'TRIVET_CSP_PASSWORD_FILE',
};
/** Of the appliance. */
export const FIRST_ADMIN: FirstUser = {
  tenant: APPLIANCE_TENANT,
  name: ADMIN_USER,
  role: 'admin',
  setting: 'TRIVET_ADMIN_PASSWORD_FILE',
};

/**
 * Makes the user with the password of the file, if there is no such user, and in place of an administrator no other one
 * either. An existing one is never changed: whoever gave it another password must not lose that at the next start. The
 * answer: is there such a user, and does the file have its password?
 */
export async function addFirstUser(
  tx: EntityManager,
  { tenant, name, role, setting }: FirstUser,
  file: string,
): Promise<boolean> {
  const password = readSecretFile(setting, file);
  const passwords = new Passwords();
  const [{ id: tenantId }] = await tx.query('SELECT id FROM trivet.tenant WHERE name = $1', [tenant]);
  const users: { name: string; password: string; role: Role }[] = await tx.query(
    'SELECT name, password, role FROM trivet.tenant_user WHERE tenant_id = $1 AND (name = $2 OR role = $3)',
    [tenantId, name, 'admin'],
  );
  const known = users.find(user => user.name === name);
  if (known)
    return passwords.verify(
      password,
      async () => known.password,
      async ({ matches }) => matches,
    );
  if (role === 'admin' && users.length > 0) return false;
  try {
    requirePassword(password, setting);
  } catch (error) {
    throw new ConfigError((error as Error).message);
  }
  const id = uuidv7();
  await tx.query('INSERT INTO trivet.tenant_user (tenant_id, id, name, password, role) VALUES ($1, $2, $3, $4, $5)', [
    tenantId,
    id,
    name,
    await passwords.hash(password),
    role,
  ]);
  const [{ text }, values] = auditWrite(BY_MIGRATE, {
    tenantId,
    tenantName: tenant,
    action: 'user.create',
    subject: { kind: 'user', id, name: showLoginName({ tenant, user: name }) },
    after: { name, role, state: 'active' },
  });
  await tx.query(text, [...values]);
  return true;
}

export const BY_MIGRATE = { kind: 'command', name: 'migrate', address: '' } as const;
