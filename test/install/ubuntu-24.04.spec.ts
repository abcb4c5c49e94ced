import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parts } from '#test/support/parts';
import { BareDebian, ROOT } from './bare-debian.js';
import { walkReadme } from './first-hour.js';
import { putNode } from './node-archive.js';

const ARCHIVE = { node: '22.21.1', npm: '10.9.4' };

/** Its own Node is 18, its Ceph 19, its Redis 7. As it was released, with main and universe, which Ubuntu has from the start. */
describe.skipIf(!parts().ubuntu)('Ubuntu 24.04', { timeout: 900_000 }, () => {
  let ubuntu: BareDebian;
  beforeAll(async () => {
    ubuntu = await BareDebian.start('noble');
    await ubuntu.must('apt-get update && apt-get install git');
  }, 900_000);
  afterAll(() => ubuntu?.stop(), 300_000);

  it('runs for root with another Node', async () => {
    expect(await ubuntu.must('cat /etc/os-release')).toContain('VERSION_ID="24.04"');
    const as = { ...ROOT, bin: await putNode(ubuntu, ARCHIVE) };
    await walkReadme(ubuntu, { as, clone: '/root/trivet', npm: ARCHIVE.npm, skipped: [], built: true });
    expect(await ubuntu.must('radosgw --version')).toMatch(/ 19\.\d/);
  });
});
