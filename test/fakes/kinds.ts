/** Whoever imports this makes the fakes known in its process; it comes before anything opens a backend. */
import type { BlockBackendKind } from '#backends/block-backend';
import type { ObjectBackendKind } from '#backends/object-backend';
import { addBackendKinds } from '#backends/registry';
import { fakeBlockKind } from '#test/fakes/block/fake-block-kind';
import { fakeIamKind, fakeKind, fakeSigningKind } from '#test/fakes/object/fake-kind';

addBackendKinds({
  object: [fakeKind, fakeIamKind, fakeSigningKind] as ObjectBackendKind[],
  block: [fakeBlockKind as BlockBackendKind],
});
