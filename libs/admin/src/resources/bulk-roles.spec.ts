import { expect, it } from 'vitest';
import { bulkRoutes } from '#admin/contract/bulk';
import { BULK_ACTIONS, type BulkAction } from '#storage/bulk/bulk-actions';

const { items: _, ...starts } = bulkRoutes;

it.each(Object.values(starts).map(route => [route.id, route] as const))(
  '%s asks for the role that is asked for again before its items begin',
  (_, { path, access }) => {
    const action = path.split('/').at(-1) as BulkAction;
    expect(access.role).toBe(BULK_ACTIONS[action].role);
  },
);
