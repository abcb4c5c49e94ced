import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder with package.json: the same from sources, from dist and from a bundle; files that tsc does not copy are found from there. */
export const PACKAGE_ROOT = (() => {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
})();

/** The file of a program that bundle.mjs makes. */
export const programFile = (
  name: 'gateway' | 'worker' | 'connector' | 'trivet' | 'test-gateway' | 'test-worker',
): string => join(PACKAGE_ROOT, 'dist', 'programs', `${name}.js`);
