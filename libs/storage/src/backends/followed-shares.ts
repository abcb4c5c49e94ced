/** Shares follow the backend of the appliance that they are shares of, in the transaction that changes it. */
import type { SecretBox } from '#platform/crypto/secrets';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { BackendKinds } from '#storage/backends/backend-kinds';
import { CHANGE, FORGET_FAULT } from '#storage/backends/backend-rows';
import { sealCredentials } from '#storage/backends/backend-secrets';
import { requirePoolNames } from '#storage/backends/pool-names';
import { asTenant, type BackendShare } from '#storage/backends/shares';
import type { BackendState } from '#storage/shared/backend-state';
import { type Actor, audit } from '#tenancy/audit-log/audit-log';

const CONFIG = sql('backend_config', 'SELECT config FROM trivet.backend WHERE tenant_id = $1 AND id = $2 FOR UPDATE');

export interface SharingParts {
  kinds: BackendKinds;
  secrets: SecretBox;
  applianceId: string;
}

interface Shared {
  kind: string;
  config: Record<string, unknown>;
  state: BackendState;
}

/** Carries a change to the shares. */
export async function followShared(
  tx: Tx,
  { kinds, secrets, applianceId }: SharingParts,
  actor: Actor,
  owner: string,
  source: Shared,
  credentials: Record<string, string> | undefined,
  shares: readonly BackendShare[],
): Promise<void> {
  const registration = kinds.require(source.kind);
  const configs = await configsOf(tx, owner, shares);
  for (const [at, share] of shares.entries()) {
    const tenant = { id: share.tenantId, name: share.tenantName };
    const others = configs.filter((_, n) => n !== at);
    const before = configs[at];
    const given = { applianceId, ownerId: owner, tenant, before, others };
    const config = registration.share(registration.config.parse(source.config), given);
    configs[at] = config;
    await asTenant(
      tx,
      tenant.id,
      async () => {
        const had = kinds.poolsOf(source.kind, before);
        await requirePoolNames(tx, tenant, share.backendId, kinds.poolsOf(source.kind, config), had);
        const values = [tenant.id, share.backendId, null, null, JSON.stringify(config), source.state];
        await tx.query(CHANGE, values);
        if (credentials) await sealCredentials(tx, secrets, tenant.id, share.backendId, credentials);
        await tx.query(FORGET_FAULT, [tenant.id, share.backendId]);
        await audit(tx, actor, {
          tenantId: tenant.id,
          tenantName: tenant.name,
          action: 'backend.follow',
          subject: { kind: 'backend', id: share.backendId, name: share.name },
          before: { config: before },
          after: { config, state: source.state, ...(credentials ? { credentials } : {}) },
        });
      },
      owner,
    );
  }
}

/** Of the shares, whose rows are locked by that: nothing new is made there meanwhile. */
export async function configsOf(tx: Tx, owner: string, shares: readonly BackendShare[]): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const { tenantId, backendId } of shares) {
    const read = () => tx.query<{ config: unknown }>(CONFIG, [tenantId, backendId]);
    for (const { config } of await asTenant(tx, tenantId, read, owner)) found.push(config);
  }
  return found;
}
