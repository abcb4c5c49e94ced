import { expect, it } from 'vitest';
import { NoExporter } from '#backends/no-exporter';

it('an appliance that exports nothing refuses what needs a target, and ends what is not there', async () => {
  const exporter = new NoExporter();
  for (const call of [exporter.ensureDaemon(), exporter.applyTarget(), exporter.resizeTarget()])
    await expect(call).rejects.toMatchObject({
      kind: 'failed_precondition',
      retry: 'never',
      message: expect.stringContaining('TRIVET_ISCSI_PORTALS'),
    });
  expect(await exporter.removeTarget()).toBe('absent');
  expect(await exporter.listTargets()).toEqual([]);
  await exporter.health();
});
