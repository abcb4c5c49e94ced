import { z } from 'zod';
import { isHostUuid } from '#csp/host-requests';
import { text } from '#csp/request-body';
import { invalid } from '#platform/errors';

/** Node documents hold every initiator of a host. */
const MAX_DOCUMENT = 64 * 1024;

/** Today's driver says host_uuid, the specification host_id. */
const host = {
  host_id: text(MAX_DOCUMENT, { lines: true }).optional(),
  host_uuid: text(MAX_DOCUMENT, { lines: true }).optional(),
};

export const publishBody = z.strictObject({
  ...host,
  access_protocol: text(64).optional(),
  // Of the call for file volumes, which gets an answer of its own.
  name: text(MAX_DOCUMENT).optional(),
  access_control_list: z.unknown().optional(),
});

export const unpublishBody = z.strictObject({ ...host, access_protocol: text(64).optional() });

/**
 * uuid or id of the host; '' when the text can name none. The driver's flavor without an orchestrator passes its node id on
 * as it is, which is a JSON document of the node (docs/callers.md#hosts).
 */
export function hostOf({ host_id, host_uuid }: { host_id?: string; host_uuid?: string }): string {
  const given = host_uuid || host_id;
  if (!given) throw invalid('host_uuid', 'required: the uuid or id of a registered host');
  if (!given.trimStart().startsWith('{')) return isHostUuid(given) ? given : '';
  try {
    const { uuid } = JSON.parse(given) as { uuid?: unknown };
    return typeof uuid === 'string' && isHostUuid(uuid) ? uuid : '';
  } catch {
    return '';
  }
}
