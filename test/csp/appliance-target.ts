import type { CspTarget } from '#test/csp/target';
import { TestAppliance } from '#test/support/appliance';
import { type BlockKind, CSP_PASSWORD } from '#test/support/block-folders';
import { until } from '#test/support/parts';

/** Gateway and worker from dist, with a backend of that kind. */
export async function openAppliance(block: BlockKind): Promise<CspTarget> {
  const appliance = await TestAppliance.start({ backend: 'fake', block });
  await until('the pool was looked at', async () => {
    return (await appliance.database.query('SELECT FROM trivet.pool')).length === 1;
  });
  return {
    url: appliance.cspUrl,
    contextPath: 'csp',
    username: 'csp',
    password: CSP_PASSWORD,
    arrayIp: 'local',
    initiator: 'iqn.2026-01.example.test:initiator',
    close: () => appliance.close(),
  };
}
