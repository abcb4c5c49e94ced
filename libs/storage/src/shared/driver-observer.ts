import type { ChangeObserver } from '#operations/accepting/change-observer';
import type { Actor } from '#tenancy/audit-log/audit-log';

/** Kinds of operations that are other words for what the audit log tells of people. */
const ACTIONS: Readonly<Record<string, string>> = {
  'volume.clone': 'volume.create',
  'volume.expand': 'volume.change',
  'volume.publish': 'publication.create',
  'volume.unpublish': 'publication.delete',
};

/** Of a driver: it has no words of its own for what it does. */
export const driverObserver = (tenantId: string, actor: Actor): ChangeObserver => ({
  note: ({ kind, resourceId: id, resourceName: name, before, after, operationId }) => {
    const action = ACTIONS[kind] ?? kind;
    const subject = { kind: action.split('.')[0]!, id, name };
    return { actor, entry: { tenantId, action, subject, before, after, ...(operationId ? { operationId } : {}) } };
  },
});
