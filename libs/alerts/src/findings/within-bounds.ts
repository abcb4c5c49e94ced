import type { Finding } from '#alerts/findings/attention';
import type { RuleName } from '#alerts/rules';

/** Of a rule that finds very many objects so many are alerts; they would be told one by one. */
export const MOST_OF_RULE = 100;
const LONGEST = { object: 500, text: 2_000 };

export const keyOf = ({ rule, object }: Pick<Finding, 'rule' | 'object'>): string => `${rule}\n${object}`;

/** As much of what was found as are alerts, by their keys. */
export function withinBounds(all: readonly Finding[]): Map<string, Omit<Finding, 'oldest'>> {
  const found = new Map<string, Omit<Finding, 'oldest'>>();
  const counts = new Map<RuleName, number>();
  for (const { oldest: _, ...finding } of all) {
    const bounded = {
      ...finding,
      object: cut(finding.object, LONGEST.object),
      what: cut(finding.what, LONGEST.text),
    };
    const count = counts.get(finding.rule) ?? 0;
    if (count >= MOST_OF_RULE || found.has(keyOf(bounded))) continue;
    counts.set(finding.rule, count + 1);
    found.set(keyOf(bounded), bounded);
  }
  return found;
}

/** Half of a character that takes two would be refused by PostgreSQL, and with it every alert. */
const cut = (text: string, length: number): string => text.slice(0, length).toWellFormed();
