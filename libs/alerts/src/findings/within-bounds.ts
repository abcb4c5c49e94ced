import type { Finding } from '#alerts/findings/attention';
import type { RuleName } from '#alerts/rules';

/** Of a rule that finds very many objects so many are alerts; they would be told one by one. */
export const MOST_OF_RULE = 100;
const LONGEST = { object: 500, text: 2_000 };

export const keyOf = ({ rule, object }: Pick<Finding, 'rule' | 'object'>): string => `${rule}\n${object}`;

/**
 * As much of what was found as are alerts, by their keys.
 * @param live keys of alerts: they come before what is new, which else would take their places
 */
export function withinBounds(
  all: readonly Finding[],
  live: { has(key: string): boolean },
): Map<string, Omit<Finding, 'oldest'>> {
  const found = new Map<string, Omit<Finding, 'oldest'>>();
  const counts = new Map<RuleName, number>();
  const bounded = all.map(({ oldest: _, ...finding }) => ({
    ...finding,
    object: cut(finding.object, LONGEST.object),
    what: cut(finding.what, LONGEST.text),
  }));
  const isLive = (finding: (typeof bounded)[number]) => live.has(keyOf(finding));
  for (const finding of [...bounded.filter(isLive), ...bounded.filter(one => !isLive(one))]) {
    const count = counts.get(finding.rule) ?? 0;
    if (count >= MOST_OF_RULE || found.has(keyOf(finding))) continue;
    counts.set(finding.rule, count + 1);
    found.set(keyOf(finding), finding);
  }
  return found;
}

/** Half of a character that takes two would be refused by PostgreSQL, and with it every alert. */
const cut = (text: string, length: number): string => text.slice(0, length).toWellFormed();

/** What a rule's state turns into when it gets worse: then it is not found any more, and has not ended. */
const WORSE: Readonly<Partial<Record<RuleName, readonly RuleName[]>>> = {
  interface_degraded: ['interface_down'],
  certificate_ending: ['certificate_ended'],
  backend_fault: ['backend_silent'],
  pool_filling: ['pool_full', 'pool_down'],
  pool_full: ['pool_down'],
};

/** Something worse of the same object was found. */
export const gotWorse = (
  { rule, object }: Pick<Finding, 'rule' | 'object'>,
  found: { has(key: string): boolean },
): boolean => (WORSE[rule] ?? []).some(worse => found.has(keyOf({ rule: worse, object })));
