/** Of a row `p` of trivet.pool: bytes a second over the last week, of half a day at least; NULL: too little is known. */
export const GROWTH = `SELECT CASE WHEN max(s.at) - min(s.at) >= interval '12 hours'
            THEN regr_slope(s.used_bytes, extract(epoch FROM s.at)) END
  FROM trivet.pool_sample s
 WHERE s.tenant_id = p.tenant_id AND s.backend_id = p.backend_id AND s.pool = p.name AND s.at > now() - interval '7 days'`;

const DAY_S = 86_400;
/** Nobody plans by what lies beyond. */
const MOST_DAYS = 3_650;

/** If it goes on as in the last week. null: it does not grow, or too little is known. */
export function daysToFull({
  total,
  used,
  growth,
}: {
  total: string;
  used: string;
  growth: number | null;
}): number | null {
  if (growth === null || growth <= 0) return null;
  const days = Math.max(0, Number(total) - Number(used)) / growth / DAY_S;
  return days > MOST_DAYS ? null : Math.round(days * 10) / 10;
}
