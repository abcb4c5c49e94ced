import { describe, expect, it } from 'vitest';

import type { Context } from '#test/cosi/conformance/context';
import { v1alpha1Info, v1alpha2Info } from '#test/cosi/sidecar-checks';

export function identityCases(context: Context): void {
  describe('DriverGetInfo', () => {
    it('v1alpha1: gives the driver name', async () => {
      const { code, reply } = await context.call('v1alpha1', 'DriverGetInfo', {});
      expect(code).toBe('OK');
      expect(reply.name).toBe(context.target.driverName);
      expect(v1alpha1Info(reply)).toEqual([]);
    });

    it.each(context.v1alpha2)('%s: gives name and protocols that the sidecar accepts', async dialect => {
      const { code, reply } = await context.call(dialect, 'DriverGetInfo', {});
      expect(code).toBe('OK');
      expect(reply.name).toBe(context.target.driverName);
      expect(reply.supported_protocols).toContainEqual({ type: 'S3' });
      expect(v1alpha2Info(reply)).toEqual([]);
    });

    it('answers while the store is down', async () => {
      await context.target.control.setDown(true);
      try {
        for (const dialect of ['v1alpha1', 'r1'] as const) {
          expect(await context.call(dialect, 'DriverGetInfo', {})).toMatchObject({ code: 'OK' });
        }
      } finally {
        await context.target.control.setDown(false);
      }
    });
  });
}
