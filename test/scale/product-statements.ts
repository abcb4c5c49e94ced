import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';

export interface ProductStatement {
  name: string;
  text: string;
}

/** Every module of the libraries that makes statements is loaded: they are made then. */
export async function loadLibraries(): Promise<void> {
  const files = globSync('libs/*/src/**/*.ts', { cwd: PACKAGE_ROOT });
  for (const file of files.sort()) {
    if (/\.(spec|d)\.ts$|\/conformance\//.test(file)) continue;
    const path = join(PACKAGE_ROOT, file);
    if (/\b(sql|setSql|sqlFile)\(/.test(readFileSync(path, 'utf8'))) await import(/* @vite-ignore */ path);
  }
}
