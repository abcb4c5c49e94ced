import { afterAll, beforeAll, describe } from 'vitest';
import { ALL_DIALECTS, CosiClient, type Dialect } from '#test/cosi/client';
import { badInputCases } from '#test/cosi/conformance/bad-input-cases';
import { createBucketCases, deleteBucketCases, existingBucketCases } from '#test/cosi/conformance/bucket-cases';
import { Context } from '#test/cosi/conformance/context';
import { grantCases } from '#test/cosi/conformance/grant-cases';
import { identityCases } from '#test/cosi/conformance/identity-cases';
import { revokeCases } from '#test/cosi/conformance/revoke-cases';
import { settingCases } from '#test/cosi/conformance/setting-cases';
import { wireCases } from '#test/cosi/conformance/wire-cases';
import type { CosiSetup, CosiTarget } from '#test/cosi/target';

/** The COSI conformance suite: every RPC of both packages, in every wire revision, against whatever `setup` opens. */
export function describeCosi(name: string, setup: CosiSetup, dialects: readonly Dialect[] = ALL_DIALECTS): void {
  describe(name, () => {
    let target: CosiTarget | undefined;
    let client: CosiClient | undefined;
    beforeAll(async () => {
      target = await setup();
      client = new CosiClient(target.socketPath);
    });
    afterAll(async () => {
      client?.close();
      await target?.close();
    });
    const context = new Context(() => {
      if (!target || !client) throw new Error('the target is not open');
      return { target, client };
    }, dialects);

    identityCases(context);
    createBucketCases(context);
    existingBucketCases(context);
    deleteBucketCases(context);
    grantCases(context);
    revokeCases(context);
    badInputCases(context);
    wireCases(context);
    settingCases(setup);
  });
}
