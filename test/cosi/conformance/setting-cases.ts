import { describe, it } from 'vitest';
import { CosiClient } from '#test/cosi/client';
import { Context, grantRequest } from '#test/cosi/conformance/context';
import type { CosiSettings, CosiSetup } from '#test/cosi/target';

const GRANT = 'DriverGrantBucketAccess';

/** What an endpoint's settings change; each opens a target of its own. */
export function settingCases(setup: CosiSetup): void {
  const using = async (settings: CosiSettings, body: (context: Context) => Promise<void>): Promise<void> => {
    const target = await setup(settings);
    const client = new CosiClient(target.socketPath);
    try {
      await body(new Context(() => ({ target, client })));
    } finally {
      client.close();
      await target.close();
    }
  };

  describe('settings', () => {
    it.each([
      ['already_exists', 'ALREADY_EXISTS'],
      ['invalid_argument', 'INVALID_ARGUMENT'],
    ] as const)('grant mismatch %s: v1alpha1 gets %s, v1alpha2 ALREADY_EXISTS', async (grantMismatch, code) => {
      await using({ grantMismatch }, async context => {
        const [bucket, second] = [await context.madeBucket(), await context.madeBucket()];
        const name = context.access();
        await context.settle('v1alpha1', GRANT, grantRequest('v1alpha1', name, [[bucket, 'READ_WRITE']]));
        const others = [
          [bucket, 'READ_ONLY', 'parameters\\[accessMode\\]'],
          [second, 'READ_WRITE', 'bucket_id'],
          [second, 'READ_ONLY', 'bucket_id, parameters\\[accessMode\\]'],
        ] as const;
        const saying = (fields: string) => new RegExp(`${name} exists with another request: ${fields}$`);
        for (const [other, mode, fields] of others) {
          const request = (dialect: 'v1alpha1' | 'r1') => grantRequest(dialect, name, [[other, mode]]);
          await context.refuse('v1alpha1', GRANT, request('v1alpha1'), code, saying(fields));
          await context.refuse('r1', GRANT, request('r1'), 'ALREADY_EXISTS', saying('buckets'));
        }
      });
    });

    it('access mode numbers r3: a request without fields 3 and 4 is read by them', async () => {
      await using({ accessModeNumbers: 'r3' }, async context => {
        const bucket = await context.madeBucket();
        const name = context.access();
        // Number 4 exists in R3 only, where it is WRITE_ONLY.
        await context.settle('r1', GRANT, grantRequest('r1', name, [[bucket, 4 as never]]));
        await context.settle('r3', GRANT, grantRequest('r3', name, [[bucket, 'WRITE_ONLY']]));
        await context.refuse('r3', GRANT, grantRequest('r3', name, [[bucket, 'READ_ONLY']]), 'ALREADY_EXISTS');
      });
    });

    it('access mode numbers r1: fields of R3 are refused', async () => {
      await using({ accessModeNumbers: 'r1' }, async context => {
        const bucket = await context.madeBucket();
        await context.settle('r1', GRANT, grantRequest('r1', context.access(), [[bucket, 'READ_ONLY']]));
        const request = grantRequest('r3', context.access(), [[bucket, 'READ_ONLY']]);
        await context.refuse('r3', GRANT, request, 'INVALID_ARGUMENT', /object_metadata_access_mode/);
      });
    });
  });
}
