/** What a change of a registered backend writes: its own row, or that of a share. */
import { sql } from '#platform/database/sql';

export const CHANGE = sql(
  'backend_change',
  `UPDATE trivet.backend
      SET description = coalesce($3, description), state = coalesce($4, state), config = coalesce($5, config),
          shared_state = coalesce($6, shared_state), version = version + 1, updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);
/** What was found out about it was about what it was. */
export const FORGET_FAULT = sql(
  'backend_forget_fault',
  `UPDATE trivet.backend_circuit SET fault = NULL, fault_at = NULL, asked_at = NULL, probed_at = NULL
    WHERE tenant_id = $1 AND backend_id = $2 AND fault IS NOT NULL`,
);
