import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

const READ = sql('alerts_appliance', 'SELECT tenant_id AS "tenantId" FROM trivet.appliance_tenant()');

/** Whose alerts, receivers and silences are: the tenant of the appliance's administrators, which never changes. */
export class ApplianceTenant {
  private known: string | undefined;

  constructor(private readonly database: Pick<Database, 'call'>) {}

  async id(): Promise<string> {
    if (this.known === undefined) {
      const [row] = await this.database.call<{ tenantId: string }>(READ, []);
      this.known = row!.tenantId;
    }
    return this.known;
  }
}
