import type { QueryRunner } from 'typeorm';
import { NOT_LEAVING, promisedToOthers } from '#platform/migrations/0012-giving-way';
import { KEEP_QUOTAS, QUOTA_USED } from '#platform/migrations/0018-quota-gives-way';
import type { Migration } from '#platform/migrations/locks';

/** The expansions of these volumes were accepted by gateways that wrote the size into the request alone. */
const COLUMN = `
-- What an expansion that was accepted will give it, in bytes; NULL: none is under way.
ALTER TABLE trivet.volume ADD COLUMN growing_to bigint;
UPDATE trivet.volume v SET growing_to = o.bytes
  FROM (SELECT tenant_id, resource_id, max((request ->> 'sizeBytes')::bigint) AS bytes FROM trivet.operation
         WHERE kind = 'volume.expand' AND finished_at IS NULL GROUP BY tenant_id, resource_id) AS o
 WHERE v.tenant_id = o.tenant_id AND v.id = o.resource_id;
`;

const changed = (text: string, was: string, is: string): string => {
  if (!text.includes(was)) throw new Error(`not in the function: ${was}`);
  return text.replace(was, () => is);
};

export const PROMISED_TO_OTHERS = changed(
  promisedToOthers(NOT_LEAVING),
  `coalesce(sum(v.size_bytes), 0)
       + coalesce(sum((SELECT sum(greatest((o.request ->> 'sizeBytes')::numeric - v.size_bytes, 0))
                         FROM trivet.operation o
                        WHERE o.resource_id = v.id AND o.kind = 'volume.expand' AND o.finished_at IS NULL)), 0)`,
  'coalesce(sum(greatest(v.size_bytes, v.growing_to)), 0)',
);

export const QUOTA_OF_GROWING = changed(
  changed(QUOTA_USED, 'coalesce(sum(size_bytes), 0)', 'coalesce(sum(greatest(size_bytes, growing_to)), 0)'),
  `
           + (SELECT coalesce(sum(greatest((o.request ->> 'sizeBytes')::numeric - v.size_bytes, 0)), 0)
                FROM trivet.operation o
                JOIN trivet.volume v ON v.tenant_id = o.tenant_id AND v.id = o.resource_id
               WHERE o.tenant_id = p_tenant AND o.kind = 'volume.expand' AND o.finished_at IS NULL)`,
  '',
);

const KEEP_QUOTAS_OF_GROWING = changed(
  KEEP_QUOTAS,
  "sum((made.request ->> 'sizeBytes')::numeric - v.size_bytes)",
  'sum(v.growing_to - v.size_bytes)',
);

/** How much a volume will be is a column of it: nobody reads the request of an operation for that. */
export class GrowingVolumes1797033600000 implements Migration {
  readonly locks: Migration['locks'] = {
    volume: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [COLUMN, PROMISED_TO_OTHERS, QUOTA_OF_GROWING, KEEP_QUOTAS_OF_GROWING])
      await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of [promisedToOthers(NOT_LEAVING), QUOTA_USED, KEEP_QUOTAS]) await runner.query(statement);
    await runner.query('ALTER TABLE trivet.volume DROP COLUMN growing_to');
  }
}
