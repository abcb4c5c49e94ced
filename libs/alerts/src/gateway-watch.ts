import type { AlertWatch } from '#alerts/alert-watch';
import type { ApplianceTenant } from '#alerts/appliance-tenant';
import type { Doors } from '#alerts/findings/attention';
import { DoorsOfGateways } from '#alerts/findings/doors-of-gateways';
import type { Sender } from '#alerts/sender';
import { type TaskView, WorkerDirectory } from '#operations/workers/worker-directory';
import type { Database } from '#platform/database/database';

interface GatewayWatchParts {
  database: Database;
  appliance: ApplianceTenant;
  watch: AlertWatch;
  sender: Sender;
  /** Of this gateway. */
  doors(): Promise<Doors>;
}

/** Workers look every half minute at least. */
const LOOKED_MS = 90_000;

/**
 * A gateway's part: it says how it serves, and stands in for the workers when none has looked lately, since then somebody must be
 * told of that: none is up, or those that are up are of a release that knows no alerts.
 */
export class GatewayWatch {
  readonly name = 'gateway-alerts';
  readonly everyMs = 15_000;
  private readonly workers: WorkerDirectory;
  private readonly kept: DoorsOfGateways;

  constructor(private readonly parts: GatewayWatchParts) {
    this.workers = new WorkerDirectory(parts.database);
    this.kept = new DoorsOfGateways(parts.database);
  }

  async run(signal: AbortSignal): Promise<undefined> {
    const { appliance, watch, sender, doors } = this.parts;
    await this.kept.say(await appliance.id(), await doors());
    if (signal.aborted || (await this.workersLook())) return;
    await watch.run(signal);
    await sender.send(signal);
  }

  private async workersLook(): Promise<boolean> {
    const { workers } = this;
    const [list, tasks] = await Promise.all([workers.list(), workers.tasks()]);
    return list.some(({ state }) => state === 'up') && tasks.some(hasLooked);
  }
}

const hasLooked = ({ name, lastSuccessAt }: TaskView): boolean =>
  name === 'alerts' && lastSuccessAt !== null && Date.now() - lastSuccessAt.getTime() < LOOKED_MS;
