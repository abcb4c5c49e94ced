import type { TestAppliance } from '#test/support/appliance';

/** As if seconds had passed since the worker was killed: its leases have ended, and what it had been handed is due. */
export async function letLeasesEnd({ database }: TestAppliance): Promise<void> {
  await database.query(
    `UPDATE trivet.operation SET dispatched_at = now() - interval '1 minute',
            lease_until = CASE state WHEN 'running' THEN now() ELSE lease_until END
      WHERE id IN (SELECT id FROM trivet.operation
                    WHERE finished_at IS NULL AND dispatched_at IS NOT NULL ORDER BY seq FOR UPDATE)`,
  );
}
