import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { loadConfig } from '#platform/config/config';
import { PACKAGE_ROOT } from '#platform/package-root';
import { CHART, chartHash, MANIFESTS, readRecord, sha256 } from '../../apps/cli/src/chart/chart.js';

/** What can be said of the chart without helm; test/deploy/chart-rendering.spec.ts renders it. */
const read = (path: string): string => readFileSync(join(CHART, path), 'utf8');
const manifest = (name: string) =>
  parseAllDocuments(readFileSync(join(MANIFESTS, name), 'utf8')).map(document => document.toJS());
interface Schema {
  type?: string | string[];
  description?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
}
const schema: Schema = JSON.parse(read('values.schema.json'));
const values = parse(read('values.yaml'));

describe('deploy/kubernetes', () => {
  it('is what the chart renders with its defaults; else run `./trivet manifest` and look at what has changed', () => {
    const { chart, manifests } = readRecord();
    expect(chart).toBe(chartHash());
    for (const [name, hash] of Object.entries(manifests))
      expect(sha256(readFileSync(join(MANIFESTS, name))), name).toBe(hash);
  });

  it('and the chart are of this release', () => {
    const { version } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'));
    expect(parse(read('Chart.yaml'))).toMatchObject({ version, appVersion: version });
  });

  it('has the selectors of the manifests before the chart, since no upgrade can change them', () => {
    for (const component of ['gateway', 'worker']) {
      const [deployment] = manifest(`${component}.yaml`);
      expect(deployment.metadata.name).toBe(`trivet-${component}`);
      expect(deployment.spec.selector.matchLabels).toEqual({
        'app.kubernetes.io/name': 'trivet',
        'app.kubernetes.io/component': component,
      });
    }
  });

  it.each(['gateway', 'worker'])('replaces pods of the %s one by one, each after another one is ready', component => {
    const [deployment] = manifest(`${component}.yaml`);
    expect(deployment.spec.strategy).toEqual({
      type: 'RollingUpdate',
      rollingUpdate: { maxSurge: 1, maxUnavailable: 0 },
    });
    const [container] = deployment.spec.template.spec.containers;
    expect(container.readinessProbe.httpGet.path).toBe('/readyz');
    const sleeps: string[] = container.lifecycle?.preStop.exec.command ?? ['sleep', '0'];
    expect(sleeps[0]).toBe('sleep');
    // Calls that the cluster still sends meanwhile are taken.
    if (component === 'gateway') expect(Number(sleeps[1])).toBeGreaterThanOrEqual(5);
    const shutdown = loadConfig([], {}).TRIVET_SHUTDOWN_MS / 1_000;
    expect(deployment.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(Number(sleeps[1]) + shutdown);
    const budget = manifest('disruption.yaml').find(({ metadata }) => metadata.name === deployment.metadata.name);
    expect(budget.spec).toMatchObject({ maxUnavailable: 1, selector: deployment.spec.selector });
  });
});

describe('the values of the chart', () => {
  const check = new Ajv({ strict: false }).compile(schema);

  it('are all in the schema, which says of each what it is', () => {
    const undescribed: string[] = [];
    const unknown: string[] = [];
    const walk = (at: Schema, given: unknown, path: string): void => {
      if (path !== '' && !/\.$/.test(at.description ?? '')) undescribed.push(path);
      if (!at.properties) return;
      if (at.additionalProperties !== false) undescribed.push(`${path} lets anything in`);
      for (const name of Object.keys((given ?? {}) as object))
        if (!at.properties[name]) unknown.push(`${path}.${name}`);
      for (const [name, child] of Object.entries(at.properties))
        walk(child, (given as Record<string, unknown> | undefined)?.[name], `${path}.${name}`);
    };
    walk(schema, values, '');
    expect({ undescribed, unknown }).toEqual({ undescribed: [], unknown: [] });
  });

  it('have a default each', () => {
    const missing: string[] = [];
    const walk = (at: Schema, given: unknown, path: string): void => {
      if (given === undefined) return void missing.push(path);
      for (const [name, child] of Object.entries(at.properties ?? {}))
        walk(child, (given as Record<string, unknown>)[name], `${path}.${name}`);
    };
    walk(schema, values, '');
    // What a chart around this one shares with all of its own.
    expect(missing).toEqual(['.global']);
  });

  it('by default are what the schema takes', () => {
    expect(check(values), JSON.stringify(check.errors)).toBe(true);
  });

  it.each([
    [{ gateway: { replica: 3 } }, 'replica'],
    [{ config: { REDIS_URL: 'none' } }, 'REDIS_URL'],
    [{ cosi: { version: 'v1beta1' } }, 'version'],
    [{ connector: { gateways: ['gw-1'] } }, 'gateways'],
    [{ redis: { url: 'http://redis' } }, 'url'],
    [{ gateway: { secretFiles: { TRIVET_OIDC_ISSUER: { secretName: 'a', key: 'b' } } } }, 'secretFiles'],
  ])('are refused by it: %j', (given, named) => {
    expect(check(given)).toBe(false);
    expect(JSON.stringify(check.errors)).toContain(named);
  });

  it('take the alerts and definitions from where they are', () => {
    for (const [link, target] of [
      ['alerts.yaml', 'deploy/prometheus/alerts.yaml'],
      ...['configurations', 'data', 'requests'].map(name => [
        `crd-${name}.yaml`,
        `deploy/kubernetes/snapshot-sessions/crd-${name}.yaml`,
      ]),
    ])
      expect(realpathSync(join(CHART, 'files', link!))).toBe(join(realpathSync(PACKAGE_ROOT), target!));
  });
});
