import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MANIFESTS, RECORD, readRecord, recordOf, renderManifests } from '../chart/chart.js';
import { installHelm } from '../parts/helm.js';

/** Writes what the chart renders with its defaults, and removes what it rendered before and does no more. */
export async function manifest(): Promise<void> {
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const helm = await installHelm({ say, signal: new AbortController().signal, mark: {} });
  const rendered = await renderManifests(helm);
  for (const name of existsSync(RECORD) ? Object.keys(readRecord().manifests) : [])
    if (!rendered.has(name)) rmSync(join(MANIFESTS, name), { force: true });
  for (const [name, text] of rendered) writeFileSync(join(MANIFESTS, name), text);
  writeFileSync(RECORD, `${JSON.stringify(recordOf(rendered), null, 2)}\n`);
  process.stdout.write([...rendered.keys()].map(name => `deploy/kubernetes/${name}\n`).join(''));
}
