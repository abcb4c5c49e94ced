import type { ApplianceTenant } from '#alerts/appliance-tenant';
import { clock, evaluate, forgetOld } from '#alerts/evaluation';
import { DoorsOfGateways } from '#alerts/findings/doors-of-gateways';
import { Findings } from '#alerts/findings/findings';
import type { Sender } from '#alerts/sender';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import { WorkerDirectory } from '#operations/workers/worker-directory';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { Names } from '#tenancy/names';

/** Of stuck operations; those beyond are one alert together. */
export const TOLD = { causes: 50, told: true };
const FORGET_MS = 3_600_000;

const RECEIVERS = sql(
  'alerts_receivers',
  'SELECT EXISTS (SELECT FROM trivet.alert_receiver WHERE tenant_id = $1 AND enabled) AS any',
);

/** Looks for what is wrong, and sees to it that people are told. */
export class AlertWatch implements PeriodicTask {
  readonly name = 'alerts';
  readonly everyMs = 2_000;
  readonly scope = 'appliance';
  /** Where nobody is to be told, the list of alerts may be half a minute old. */
  readonly calm = 15;
  private readonly findings: Findings;
  private readonly doors: DoorsOfGateways;
  private forgotAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly database: Database,
    private readonly appliance: ApplianceTenant,
    private readonly sender: Sender,
  ) {
    this.findings = new Findings({ database, workers: new WorkerDirectory(database), names: new Names(database) });
    this.doors = new DoorsOfGateways(database);
  }

  async run(signal: AbortSignal): Promise<'calm' | undefined> {
    const { database } = this;
    const tenantId = await this.appliance.id();
    const lookedAt = await clock(database, tenantId);
    const { findings } = await this.findings.look(await this.doors.read(tenantId), TOLD);
    if (signal.aborted) return undefined;
    const written = await evaluate(database, tenantId, findings, lookedAt);
    // Not waited for: a receiver that does not answer holds nobody up. What is left, the sender's own task finds.
    if (written) void this.sender.send(signal).catch(() => {});
    if (performance.now() - this.forgotAt > FORGET_MS) {
      await forgetOld(database, tenantId);
      this.forgotAt = performance.now();
    }
    const [row] = await database.withTenant(tenantId, tx => tx.query<{ any: boolean }>(RECEIVERS, [tenantId]));
    return row!.any ? undefined : 'calm';
  }
}

/** Tries what was not taken. */
export class AlertDelivery implements PeriodicTask {
  readonly name = 'alert-delivery';
  readonly everyMs = 2_000;
  readonly scope = 'worker';
  readonly calm = 3;

  constructor(private readonly sender: Sender) {}

  async run(signal: AbortSignal): Promise<'calm' | undefined> {
    return (await this.sender.send(signal)) ? undefined : 'calm';
  }
}
