import type { FirstRunReply } from '#admin/contract/first-run';
import { driverManifests, type PublicDoors } from '#admin/first-run/manifests';
import { type Facts, stepsOf, type Tenant } from '#admin/first-run/steps';
import type { Overview } from '#admin/overview/overview';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { type Actor, auditWrite } from '#tenancy/audit-log/audit-log';
import { CSP_USER, showLoginName } from '#tenancy/credentials/login-name';

const DISMISSED = 'first-run.dismiss';

const FACTS = sql(
  'first_run_facts',
  `SELECT EXISTS (SELECT FROM trivet.audit_entry WHERE tenant_id = $1 AND action COLLATE "C" = '${DISMISSED}') AS dismissed,
          (SELECT u.name FROM trivet.session_token s JOIN trivet.tenant_user u ON u.tenant_id = s.tenant_id AND u.id = s.user_id
            WHERE s.tenant_id = $1 ORDER BY s.expires_at DESC LIMIT 1) AS driver,
          (SELECT name FROM trivet.cluster WHERE tenant_id = $1 AND revoked_at IS NULL AND connectors <> '{}'
            ORDER BY seen_at DESC LIMIT 1) AS cluster,
          EXISTS (SELECT FROM trivet.audit_entry
                   WHERE tenant_id = $1 AND action COLLATE "C" = 'bucket.create' AND door = 'cosi') AS sidecar,
          (SELECT u.name FROM trivet.tenant_user u
            WHERE u.tenant_id = $1 AND u.state = 'active' AND u.role = 'operator' AND u.issuer IS NULL
              AND (u.name = '${CSP_USER}'
                OR EXISTS (SELECT FROM trivet.session_token s WHERE s.tenant_id = $1 AND s.user_id = u.id))
            ORDER BY u.name <> '${CSP_USER}', u.name LIMIT 1) AS "user",
          (SELECT name FROM trivet.backend WHERE tenant_id = $1 AND config ? 'pools' ORDER BY created_at, name LIMIT 1) AS block,
          (SELECT json_build_object('name', name, 'driverName', driver_name) FROM trivet.endpoint
            WHERE tenant_id = $1 AND protocol = 'cosi' AND state = 'active' ORDER BY created_at, name LIMIT 1) AS endpoint,
          (SELECT coalesce(sum(things), 0)::text FROM trivet.tally WHERE tenant_id = $1 AND kind = 'volume') AS volumes,
          (SELECT coalesce(sum(things), 0)::text FROM trivet.tally WHERE tenant_id = $1 AND kind = 'bucket') AS buckets`,
);

/** What stands between a tenant and its first volume or bucket; each step is read from what is there. */
export class FirstRun {
  constructor(
    private readonly database: Database,
    private readonly overview: Overview,
    private readonly doors: () => PublicDoors,
  ) {}

  /** @param host how whoever asks calls this gateway, where the configuration has no name for it */
  async read(tenant: Tenant, host: string | undefined): Promise<FirstRunReply> {
    const doors = this.doors();
    const [{ backends }, facts] = await Promise.all([
      this.overview.read(tenant.id),
      this.database.withTenant(tenant.id, async tx => (await tx.query<Facts>(FACTS, [tenant.id]))[0]!),
    ]);
    const steps = stepsOf(tenant, backends, facts);
    const { user, block, endpoint } = facts;
    return {
      tenant: tenant.name,
      done: steps.every(({ done }) => done),
      dismissed: facts.dismissed,
      steps,
      manifests: driverManifests({
        tenant: tenant.name,
        doors: { ...doors, address: doors.address ?? host },
        backend: block ?? undefined,
        login: user === null ? undefined : showLoginName({ tenant: tenant.name, user }),
        endpoint: endpoint ?? undefined,
      }),
    };
  }

  /** Whoever dismisses it again changes nothing, and is in the log all the same. */
  async dismiss(actor: Actor, { id, name }: Tenant, reason?: string): Promise<void> {
    await this.database.withTenant(id, tx =>
      tx.commit(
        auditWrite(actor, {
          tenantId: id,
          tenantName: name,
          action: DISMISSED,
          subject: { kind: 'first-run', id, name },
          ...(reason === undefined ? {} : { reason }),
        }),
      ),
    );
  }
}
