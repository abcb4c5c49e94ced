/** What a volume's end asks of its snapshots; `s` is one, in SQL. */

/** Those that a protection template made go with their volume; callers made the others, and must delete them first. */
export const HOLDS_VOLUME = `NOT EXISTS (SELECT FROM trivet.protection_run r
                                          WHERE r.tenant_id = s.tenant_id AND r.snapshot_id = s.id)`;

/** Deleted, and its image is there. */
export const KEPT = "s.state = 'gone' AND s.cut IS NOT NULL AND s.image_gone_at IS NULL";
