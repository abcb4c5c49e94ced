import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';

/** As Vite writes them, minified, and not packed. */
const MOST_BYTES = 300_000;
const FOLDER = join(PACKAGE_ROOT, 'dist', 'apps', 'dashboard', 'public');
const ENTRY = 'index.html';

interface Chunk {
  file: string;
  imports?: string[];
  isDynamicEntry?: true;
}

type Manifest = Readonly<Record<string, Chunk>>;

/** A chunk with all that must be there before it runs; what is imported when somebody asks for it is not. */
function closureOf(manifest: Manifest, name: string, seen = new Set<string>()): Set<string> {
  if (seen.has(name)) return seen;
  seen.add(name);
  for (const imported of manifest[name]!.imports ?? []) closureOf(manifest, imported, seen);
  return seen;
}

describe('the scripts of the dashboard', () => {
  const manifest = JSON.parse(readFileSync(join(FOLDER, '.vite', 'manifest.json'), 'utf8')) as Manifest;
  const bytesOf = (...names: string[]): number => {
    const chunks = new Set(names.flatMap(name => [...closureOf(manifest, name)]));
    return [...chunks].reduce((sum, chunk) => sum + statSync(join(FOLDER, manifest[chunk]!.file)).size, 0);
  };
  const pages = Object.keys(manifest).filter(name => name.startsWith('src/pages/') && manifest[name]!.isDynamicEntry);

  it('are less than 300 kB for each page, unpacked', () => {
    expect(pages.length).toBeGreaterThan(25);
    const heavy = [ENTRY, ...pages]
      .map(page => ({ page, bytes: bytesOf(ENTRY, page) }))
      .filter(({ bytes }) => bytes >= MOST_BYTES);
    expect(heavy).toEqual([]);
  });
});
