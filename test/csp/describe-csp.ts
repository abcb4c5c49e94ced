import { afterAll, beforeAll, describe } from 'vitest';
import { HttpClient } from '#test/csp/client';
import { Context } from '#test/csp/conformance/context';
import { driverCases } from '#test/csp/conformance/driver-cases';
import { editCases } from '#test/csp/conformance/edit-cases';
import { groupCases } from '#test/csp/conformance/group-cases';
import { hostCases } from '#test/csp/conformance/host-cases';
import { httpCases } from '#test/csp/conformance/http-cases';
import { parameterCases } from '#test/csp/conformance/parameter-cases';
import { publishCases } from '#test/csp/conformance/publish-cases';
import { snapshotCases } from '#test/csp/conformance/snapshot-cases';
import { specExampleCases } from '#test/csp/conformance/spec-example-cases';
import { tokenCases } from '#test/csp/conformance/token-cases';
import { volumeCases } from '#test/csp/conformance/volume-cases';
import type { CspSetup, CspTarget } from '#test/csp/target';

/** The CSP conformance suite: every endpoint in both envelopes, against whatever `setup` opens. */
export function describeCsp(name: string, setup: CspSetup): void {
  describe(name, () => {
    let target: CspTarget | undefined;
    let http: HttpClient | undefined;
    beforeAll(async () => {
      target = await setup();
      http = new HttpClient(target.url);
    });
    afterAll(async () => {
      http?.close();
      await target?.close();
    });
    const context = new Context(() => {
      if (!target || !http) throw new Error('the target is not open');
      return { target, http };
    });

    tokenCases(context);
    hostCases(context);
    volumeCases(context);
    editCases(context);
    parameterCases(context);
    publishCases(context);
    snapshotCases(context);
    groupCases(context);
    httpCases(context);
    driverCases(context);
    specExampleCases(context);
  });
}
