import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';
import { runCommand } from '../parts/command.js';

export const CHART = join(PACKAGE_ROOT, 'deploy', 'helm', 'trivet');
/** What the chart renders with its defaults, beside what is written by hand. */
export const MANIFESTS = join(PACKAGE_ROOT, 'deploy', 'kubernetes');
/** Says of what the manifests were rendered, for those who have no helm. */
export const RECORD = join(MANIFESTS, 'rendered.json');

const HEADER = '# Rendered from deploy/helm/trivet by `./trivet manifest`, which renews it.\n';
const RELEASE = ['trivet', CHART, '--namespace', 'trivet'];

export interface RenderRecord {
  /** Of all files that a rendering depends on. */
  chart: string;
  /** Of each manifest. */
  manifests: Record<string, string>;
}

export const sha256 = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');

/** The text of all documents, as `helm template` prints it. */
export function renderChart(helm: string, more: readonly string[] = []): Promise<string> {
  return runCommand(helm, ['template', ...RELEASE, ...more]);
}

/** By the names of their templates, as files of deploy/kubernetes. */
export async function renderManifests(helm: string): Promise<Map<string, string>> {
  const manifests = new Map<string, string>();
  for (const document of (await renderChart(helm, ['--skip-tests'])).split(/^---\n/m)) {
    const [, name, text] = /^# Source: trivet\/templates\/([\w-]+\.yaml)\n([\s\S]*)$/.exec(document) ?? [];
    if (name === undefined || text === undefined) continue;
    const before = manifests.get(name);
    manifests.set(name, `${before === undefined ? HEADER : `${before}---\n`}${text.trim()}\n`);
  }
  return manifests;
}

/** What it is made of; links are followed, as helm does. */
export function chartHash(): string {
  const files = readdirSync(CHART, { recursive: true, encoding: 'utf8' })
    .filter(path => !/^ci\b/.test(path) && statSync(join(CHART, path)).isFile())
    .sort();
  return sha256(files.map(path => `${path}\n${sha256(readFileSync(join(CHART, path)))}\n`).join(''));
}

export const recordOf = (manifests: ReadonlyMap<string, string>): RenderRecord => ({
  chart: chartHash(),
  manifests: Object.fromEntries([...manifests].sort().map(([name, text]) => [name, sha256(text)])),
});

export const readRecord = (): RenderRecord => JSON.parse(readFileSync(RECORD, 'utf8'));
