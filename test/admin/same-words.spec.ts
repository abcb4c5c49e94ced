import { expect, it } from 'vitest';
import * as routes from '#admin/contract/route';
import * as tenants from '#admin/contract/tenants';
import * as quotas from '#tenancy/quotas/quotas';
import * as roles from '#tenancy/users/roles';

/** The contract takes nothing of the server and the domain nothing of the contract, so each has these words itself. */
it('the contract names the roles and limits that there are, in their order', () => {
  expect(routes.ROLES).toEqual(roles.ROLES);
  expect(tenants.QUOTA_KEYS).toEqual(quotas.QUOTA_KEYS);
});
