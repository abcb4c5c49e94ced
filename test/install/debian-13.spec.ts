import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { parts } from '#test/support/parts';
import { BareDebian, ROOT } from './bare-debian.js';
import { addNpm, addPerson, walkReadme } from './first-hour.js';

const readme = readFileSync(join(PACKAGE_ROOT, 'README.md'), 'utf8');
const INSTALL = 'apt-get install git nodejs npm';

/** Its Node is 20.19, its npm 9.2.0, its Ceph 18, its Redis 8. */
describe.skipIf(!parts().debian)('Debian 13', { timeout: 900_000 }, () => {
  let debian: BareDebian;
  beforeAll(async () => {
    debian = await BareDebian.start('trixie');
    expect(readme).toContain(`    apt-get update && ${INSTALL}\n`);
    await debian.must(`apt-get update && ${INSTALL}`);
  }, 900_000);
  afterAll(() => debian?.stop(), 300_000);

  it("runs for root with Debian's own Node and npm", async () => {
    expect((await debian.must('node --version')).trim()).toMatch(/^v20\.19\./);
    await walkReadme(debian, { as: ROOT, clone: '/srv/trivet', npm: '9.2.0', skipped: [] });
  });

  it('passes the tests of object stores on its Ceph, and of the queue on its Redis', async () => {
    expect(await debian.must('radosgw --version')).toMatch(/ 18\.\d/);
    expect(await debian.must('redis-server --version')).toMatch(/ v=8\./);
    await debian.putBuilt('/srv/trivet');
    const tests = [
      ...['rgw', 'access-modes', 'bucket', 'stale', 'tenant-limit', 'wrong-secret'].map(
        name => `object-backend/${name}`,
      ),
      ...['object-storage/main-job', 'object-storage/stale-grant', 'cosi/appliance-rgw', 'doorbell', 'silent-queue'],
    ].join(' ');
    const command = `./trivet test --no-install --project parts ${tests}`;
    const said = await debian.must(`TRIVET_REQUIRE=postgres,redis,rgw ${command}`, { at: '/srv/trivet' });
    expect(said).toMatch(/^\d{2,} passed, 0 failed, \d+ skipped$/m);
  });

  it('runs for an ordinary user with npm 11', async () => {
    const person = await addPerson(debian, 'ann', '/home/ann/npm/bin');
    await addNpm(debian, person, '11');
    const npm = (await debian.must('npm --version', { as: person })).trim();
    expect(npm).toMatch(/^11\./);
    await walkReadme(debian, { as: person, clone: '/home/ann/trivet', npm, skipped: ['xfs'], built: true });
  });
});
