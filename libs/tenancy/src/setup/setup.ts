import { type Config, ConfigError, readSecretFile } from '#platform/config/config';
import { decodeSealed, encodeSealed, type SecretBox } from '#platform/crypto/secrets';
import { source } from '#platform/database/database';
import { uuidv7 } from '#platform/uuid';
import { DEFAULT_TENANT } from '#tenancy/credentials/login-name';
import { COSI_ENDPOINT_NAME, CSI_ENDPOINT_NAME } from '#tenancy/endpoints/endpoint-names';
import { localBackend } from '#tenancy/setup/local-backend';
import { objectBackends } from '#tenancy/setup/object-backends';
import { requireOwnPools } from '#tenancy/setup/own-pools';
import { rbdBackend } from '#tenancy/setup/rbd-backend';
import { addFirstUser, FIRST_ADMIN, FIRST_CSP_USER } from '#tenancy/users/first-user';

export { COSI_ENDPOINT_NAME, DEFAULT_TENANT };

export interface BackendDefinition {
  name: string;
  kind: string;
  config: Record<string, unknown>;
  credentials: Record<string, string>;
}

export interface SetUp {
  /** Does the password file, if one was given, have the password of the user csp? */
  cspPasswordHolds: boolean | undefined;
  /** As that, of admin@appliance. */
  adminPasswordHolds: boolean | undefined;
}

/**
 * What the environment says about backends, written into the registry as the owner role: the default tenant, its
 * backends with sealed credentials, its COSI endpoint, its first CSP user, and the appliance's first administrator. Safe to repeat; a changed address or key
 * raises the backend's version, and running workers follow within seconds.
 *
 * @param isObjectKind whether backends of this kind hold buckets
 * @param defined what is registered; tests have others than the environment's
 */
export async function setUp(
  config: Config & { TRIVET_DATABASE_OWNER_URL: string },
  secrets: SecretBox,
  isObjectKind: (kind: string) => boolean,
  defined = backendsOf(config),
): Promise<SetUp> {
  const owner = source(config.TRIVET_DATABASE_OWNER_URL, 'trivet:setup', 1);
  await owner.initialize();
  try {
    return await owner.transaction(async tx => {
      await tx.query('LOCK TABLE trivet.tenant IN SHARE ROW EXCLUSIVE MODE');
      await tx.query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING', [
        uuidv7(),
        DEFAULT_TENANT,
      ]);
      const [{ id: tenantId }] = await tx.query('SELECT id FROM trivet.tenant WHERE name = $1', [DEFAULT_TENANT]);
      for (const backend of defined) {
        const [known] = await tx.query(
          `SELECT b.id, b.config, s.sealed FROM trivet.backend b
             LEFT JOIN trivet.secret s ON s.tenant_id = b.tenant_id AND s.owner_table = 'backend' AND s.owner_id = b.id
            WHERE b.tenant_id = $1 AND b.name = $2`,
          [tenantId, backend.name],
        );
        const id: string = known?.id ?? uuidv7();
        const place = { tenantId, table: 'backend', rowId: id, column: 'credentials' };
        const credentials = JSON.stringify(backend.credentials);
        const same =
          known?.sealed &&
          secrets.openText(decodeSealed(known.sealed), place) === credentials &&
          sameJson(known.config, backend.config);
        if (same) continue;
        await requireOwnPools(tx, tenantId, id, backend, known?.config);
        await tx.query(
          `INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT (tenant_id, id) DO UPDATE SET config = excluded.config, version = backend.version + 1,
                                                        updated_at = now()`,
          [tenantId, id, backend.name, backend.kind, JSON.stringify(backend.config)],
        );
        await tx.query(
          `INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed)
           VALUES ($1, 'backend', $2, 'credentials', $3)
           ON CONFLICT (tenant_id, owner_table, owner_id, name) DO UPDATE SET sealed = excluded.sealed`,
          [tenantId, id, encodeSealed(secrets.seal(credentials, place))],
        );
      }
      const [door] = await tx.query('SELECT id, kind FROM trivet.backend WHERE tenant_id = $1 AND name = $2', [
        tenantId,
        config.TRIVET_COSI_BACKEND,
      ]);
      if (door && !isObjectKind(door.kind))
        throw new ConfigError(
          `TRIVET_COSI_BACKEND: ${config.TRIVET_COSI_BACKEND} holds volumes, and COSI is about buckets`,
        );
      if (door)
        await tx.query(
          `INSERT INTO trivet.endpoint (tenant_id, id, name, protocol, backend_id) VALUES ($1, $2, $3, 'cosi', $4)
           ON CONFLICT (tenant_id, name) DO UPDATE SET backend_id = excluded.backend_id`,
          [tenantId, uuidv7(), COSI_ENDPOINT_NAME, door.id],
        );
      else if (config.COSI_ENDPOINT)
        throw new ConfigError(
          `TRIVET_COSI_BACKEND: no backend is named ${config.TRIVET_COSI_BACKEND}; set TRIVET_RGW_ENDPOINT to register one`,
        );
      if (config.TRIVET_CSI_ENDPOINT || defined.some(({ config }) => 'pools' in config))
        await tx.query(
          `INSERT INTO trivet.endpoint (tenant_id, id, name, protocol) VALUES ($1, $2, $3, 'csi')
           ON CONFLICT (tenant_id, name) DO NOTHING`,
          [tenantId, uuidv7(), CSI_ENDPOINT_NAME],
        );
      const { TRIVET_CSP_PASSWORD_FILE: csp, TRIVET_ADMIN_PASSWORD_FILE: admin } = config;
      return {
        cspPasswordHolds: csp ? await addFirstUser(tx, FIRST_CSP_USER, csp) : undefined,
        adminPasswordHolds: admin ? await addFirstUser(tx, FIRST_ADMIN, admin) : undefined,
      };
    });
  } finally {
    await owner.destroy();
  }
}

/** The backends that the environment names. */
export function backendsOf(config: Config): BackendDefinition[] {
  const backends: BackendDefinition[] = objectBackends(config);
  const local = localBackend(config);
  if (local) backends.push(local);
  const rbd = rbdBackend(config);
  if (rbd) {
    const { TRIVET_RBD_KEY_FILE: key } = config;
    if (!key) throw new ConfigError('TRIVET_RBD_KEY_FILE: required with TRIVET_RBD_MONITORS');
    backends.push({ ...rbd, credentials: { key: readSecretFile('TRIVET_RBD_KEY_FILE', key) } });
  }
  return backends;
}

const sameJson = (a: Record<string, unknown>, b: Record<string, unknown>): boolean => {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every(key => JSON.stringify(a[key]) === JSON.stringify(b[key]));
};
