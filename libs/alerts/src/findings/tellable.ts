import type { Seen } from '#alerts/findings/attention';
import { MARKS } from '#alerts/rules';

const SLOW_MS = MARKS.slowCallMinutes * 60_000;

/**
 * What was seen without that which the overview shows and nobody is told of, as Prometheus tells nobody: a call that takes its
 * time, and a file that is larger than it need be.
 */
export const tellable = ({ slowCalls, conditions, ...seen }: Seen): Seen => ({
  ...seen,
  slowCalls: slowCalls.filter(({ oldest }) => Date.now() - Date.parse(oldest.since) > SLOW_MS),
  conditions: { ...conditions, findings: conditions.findings.filter(({ kind }) => kind !== 'larger_image') },
});
