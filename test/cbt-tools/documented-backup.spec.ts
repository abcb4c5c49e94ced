import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { toolArgs } from '#test/cbt-tools/run-tool';
import { ToolHouse } from '#test/cbt-tools/tool-house';

const page = readFileSync(join(PACKAGE_ROOT, 'docs', 'changed-blocks.md'), 'utf8');
/** But for the first, which starts an appliance. */
const commands = (page.split('## An incremental backup in five minutes\n')[1] ?? '')
  .split('\n## ')[0]!
  .split('\n')
  .filter(line => line.startsWith('    '))
  .slice(1);

let house: ToolHouse;
beforeAll(async () => {
  house = await ToolHouse.open('own');
});
afterAll(() => house?.close());

/** As people type them; tools that need an appliance are told of the test's. */
it('the incremental backup of docs/changed-blocks.md is one, and gives the image back', async () => {
  expect(commands).toHaveLength(6);
  const quoted = (words: readonly string[]) => words.map(word => `'${word}'`).join(' ');
  const tool = `trivet() {
    case "$1 $2" in
      'backup check' | 'backup restore') "$NODE" ${quoted(toolArgs())} "$@" ;;
      *) "$NODE" ${quoted(toolArgs())} "$@" ${quoted(house.login)} ;;
    esac
  }`;
  const script = [tool, ...commands]
    .join('\n')
    .replaceAll('./trivet ', 'trivet ')
    .replaceAll('/srv/backup', house.work);
  const { stdout } = await promisify(execFile)('sh', ['-euc', script], {
    cwd: house.work,
    env: {
      PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
      NODE_NO_WARNINGS: '1',
      TRIVET_HOME: '/nonexistent',
      NODE: process.execPath,
    },
  });
  expect(stdout).toMatch(/^data .* holds disk\.img, 64 MiB$/m);
  expect(stdout).toMatch(/^point 1: full, /m);
  expect(stdout).toMatch(/^point 2: incremental, 0 ranges, /m);
  expect(stdout).toMatch(/^2 points, .*: all is as it was stored$/m);
  expect(stdout).toContain('restored to restored.img');
});
