import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parts } from '#test/support/parts';
import { BareDebian, type Person, ROOT } from './bare-debian.js';
import { addPerson, walkReadme } from './first-hour.js';
import { putNode } from './node-archive.js';

const ARCHIVES = [
  { node: '20.20.2', npm: '10.8.2', skipped: [] },
  { node: '22.21.1', npm: '10.9.4', skipped: ['xfs'] },
];

/** Its own Node is 18: README has another one put in. Its Ceph is 16, its Redis 7. What is built it is given; Debian 13 builds. */
describe.skipIf(!parts().debian)('Debian 12', { timeout: 900_000 }, () => {
  let debian: BareDebian;
  beforeAll(async () => {
    debian = await BareDebian.start('bookworm');
    await debian.must('apt-get update && apt-get install git');
  }, 900_000);
  afterAll(() => debian?.stop(), 300_000);

  it.each(ARCHIVES)('runs with Node $node and npm $npm', async ({ skipped, ...archive }) => {
    const bin = await putNode(debian, archive);
    const as: Person = skipped.length === 0 ? { ...ROOT, bin } : await addPerson(debian, 'ben', bin);
    expect((await debian.must('node --version', { as })).trim()).toBe(`v${archive.node}`);
    await walkReadme(debian, { as, clone: `${as.home}/trivet`, npm: archive.npm, skipped, built: true });
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
