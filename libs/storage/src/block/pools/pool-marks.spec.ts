import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { PACKAGE_ROOT } from '#platform/package-root';
import { POOL_MARKS } from '#storage/block/pools/pool-marks';

const read = (path: string): string => readFileSync(join(PACKAGE_ROOT, path), 'utf8');

it.each(['deploy/prometheus/alerts.yaml', 'deploy/helm/trivet/files/alerts.yaml'])(
  'the alerts of %s come at the marks',
  path => {
    const { groups } = parse(read(path)) as { groups: { rules: { alert: string; expr: string }[] }[] };
    const rules = groups.flatMap(group => group.rules).filter(({ expr }) => expr.includes('trivet_pool_used_ratio'));
    expect(rules.map(({ alert, expr }) => [alert, expr])).toEqual([
      ['TrivetPoolFilling', `max(trivet_pool_used_ratio_max) > ${POOL_MARKS.filling}`],
      ['TrivetPoolFull', `max(trivet_pool_used_ratio_max) > ${POOL_MARKS.full}`],
    ]);
  },
);

it('the figure of Grafana changes its colour at the marks', () => {
  const { panels } = JSON.parse(read('deploy/grafana/trivet.json')) as {
    panels: {
      targets?: { expr: string }[];
      fieldConfig?: { defaults: { thresholds?: { steps: { value: unknown }[] } } };
    }[];
  };
  const used = panels.filter(({ targets }) => targets?.some(({ expr }) => expr === 'max(trivet_pool_used_ratio_max)'));
  expect(
    used.map(({ fieldConfig }) => fieldConfig?.defaults.thresholds?.steps.map(({ value }) => value)),
  ).toContainEqual([null, POOL_MARKS.filling, POOL_MARKS.full]);
});
