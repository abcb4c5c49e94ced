// Removes from node_modules what the programs do not read: node keep-packages.mjs LIST, in the folder above it. bundle.mjs writes the
// list; all other packages are in the programs.
import { readdirSync, readFileSync, rmSync } from 'node:fs';

const kept = new Set(JSON.parse(readFileSync(process.argv[2], 'utf8')));
const names = readdirSync('node_modules').flatMap(name =>
  name.startsWith('@') ? readdirSync(`node_modules/${name}`).map(inside => `${name}/${inside}`) : [name],
);
for (const name of names) if (!kept.has(name)) rmSync(`node_modules/${name}`, { recursive: true });
