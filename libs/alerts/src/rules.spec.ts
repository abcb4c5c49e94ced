import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ALERT_RULES } from '#admin/contract/alerts';
import { MARKS, RULE_NAMES, RULES, type Rule } from '#alerts/rules';
import { PACKAGE_ROOT } from '#platform/package-root';

interface PrometheusRule {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: 'page' | 'ticket' };
}

const SECONDS = { s: 1, m: 60, h: 3_600 } as const;
const secondsOf = (text = '0s'): number => {
  const [, count, unit] = /^(\d+)([smh])$/.exec(text)!;
  return Number(count) * SECONDS[unit as keyof typeof SECONDS];
};
const shared = Object.entries<Rule>(RULES).filter(([, { prometheus }]) => prometheus !== null);

describe.each(['deploy/prometheus/alerts.yaml', 'deploy/helm/trivet/files/alerts.yaml'])('%s', path => {
  const { groups } = parse(readFileSync(join(PACKAGE_ROOT, path), 'utf8')) as { groups: { rules: PrometheusRule[] }[] };
  const known = new Map(groups.flatMap(({ rules }) => rules).map(rule => [rule.alert, rule]));

  it.each(shared)('says of %s what we say, after the same time', (_, { prometheus, severity, holds }) => {
    const rule = known.get(prometheus!);
    expect(rule, `there is no ${prometheus}`).toBeDefined();
    expect(rule!.labels.severity).toBe(severity === 'error' ? 'page' : 'ticket');
    expect(holds).toBe(secondsOf(rule!.for));
  });

  it('finds a call when it has not returned for as long', () => {
    expect(known.get(RULES.slow_call.prometheus!)!.expr).toMatch(new RegExp(`> ${MARKS.slowCallMinutes * 60}$`));
  });
});

it('has the rules that the contract names, and docs/alerts.md tells of each with its time', () => {
  expect([...ALERT_RULES]).toEqual([...RULE_NAMES]);
  const rows = readFileSync(join(PACKAGE_ROOT, 'docs/alerts.md'), 'utf8')
    .split('\n')
    .filter(line => /^\| `/.test(line))
    .map(line => line.split('|').map(cell => cell.trim().replaceAll('`', '')))
    // The other tables have fewer columns.
    .filter(cells => cells.length === 7);
  const shown = (seconds: number): string =>
    seconds === 0 ? 'at once' : seconds % 3_600 === 0 ? `${seconds / 3_600} h` : `${seconds / 60} min`;
  expect(rows.map(([, rule, severity, after, , prometheus]) => [rule, severity, after, prometheus])).toEqual(
    Object.entries<Rule>(RULES).map(([rule, { severity, holds, prometheus }]) => [
      rule,
      severity,
      shown(holds),
      prometheus ?? '',
    ]),
  );
});
