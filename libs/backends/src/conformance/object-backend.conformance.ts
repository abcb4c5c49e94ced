/**
 * What every ObjectBackend must do, whatever store is behind it: the sentences of the port, as tests. An adapter brings
 * a harness through which the suite looks at the store by other means than the port.
 */
import { describe } from 'vitest';
import { describeAccounts } from '#backends/conformance/object-accounts.conformance';
import { describeBorder } from '#backends/conformance/object-border.conformance';
import { describeBuckets } from '#backends/conformance/object-buckets.conformance';
import { describeGrants } from '#backends/conformance/object-grants.conformance';
import { describePrincipals } from '#backends/conformance/object-principals.conformance';
import { type ObjectBackendHarness, ObjectWorld, type SuiteTraits } from '#backends/conformance/object-world';

export function describeObjectBackend(
  name: string,
  setup: () => Promise<ObjectBackendHarness>,
  traits: SuiteTraits = {},
): void {
  describe(`object backend: ${name}`, () => {
    const world = new ObjectWorld(traits);
    world.begin(setup);
    for (const describePart of [describeBorder, describeBuckets, describePrincipals, describeAccounts, describeGrants])
      describePart(world);
  });
}
