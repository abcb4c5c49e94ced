import { AdminHouse } from '#test/admin/admin-house';
import { alertFigures } from '#test/bench/admin-alerts';
import { counterFigures } from '#test/bench/admin-counters';
import { eventFigures } from '#test/bench/admin-events';
import { loginFigures } from '#test/bench/admin-logins';
import { pageFigures } from '#test/bench/admin-pages';
import { firstViewFigures } from '#test/bench/admin-view';
import type { BenchOptions, Figure } from '#test/bench/measure';

/** The API and the page of administrators, at a gateway of its own process: pages, events, logins, the first view, counters of volumes, and alerts. */
export async function benchAdmin(options: BenchOptions): Promise<Figure[]> {
  const house = await AdminHouse.create({
    block: 'fake',
    env: { TRIVET_LOG_LEVEL: 'warn', TRIVET_ALERT_NETWORKS: '127.0.0.0/8' },
  });
  try {
    await house.appliance.gateway();
    return [
      ...(await firstViewFigures(house)),
      ...(await loginFigures(house, options)),
      ...(await pageFigures(house, options)),
      ...(await eventFigures(house, options)),
      ...(await counterFigures(house, options)),
      // It starts a worker, beside which nothing else is measured.
      ...(await alertFigures(house, options)),
    ];
  } finally {
    await house.close();
  }
}
