import { expect, it } from 'vitest';
import type { AdminCall } from '#admin/requests/admin-call';
import { Change } from '#admin/requests/change';

it('a claim that another call was faster with leaves nothing noted when it is looked at again', async () => {
  const call = { actor: {}, tenant: { id: 't', name: 'acme' } } as unknown as AdminCall;
  const change = new Change(call, { action: 'bucket.create' });
  change.note({ kind: 'bucket.create', resourceId: 'b', resourceName: 'photos' });
  await change.before({} as never);
  expect(change.noted).toBeUndefined();
});
