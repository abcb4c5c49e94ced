import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { hasTgtRbd } from '#test/exporter/rbd-images';
import { parts, until } from '#test/support/parts';
import { TestHomes } from './cli.js';

const homes = new TestHomes();

describe.skipIf(!parts().xfs || !hasTgtRbd())('up with images of Ceph', () => {
  afterAll(() => homes.clear());

  it('has a backend of them beside local, which the demo walks, and keeps it', async () => {
    const home = homes.at('images');
    home.settings.TRIVET_REDIS_URL = 'none';
    const up = () => home.must('up', '--detach', '--no-install', '--with', 'rbd');
    const isUp = () =>
      until('the backend is up', async () =>
        ((await home.status()).backends ?? []).some(({ name, state }) => name === 'ceph' && state === 'up'),
      );
    expect(await up()).toMatch(/rbd is ready/);
    await isUp();
    expect((await home.status()).backends).toMatchObject([
      { name: 'ceph', kind: 'rbd', pools: [{ name: 'ceph', state: 'up' }] },
      { name: 'local', kind: 'reflink' },
      { name: 'rgw' },
    ]);
    expect(await home.must('demo')).toMatch(/backend ceph[\s\S]*nothing is left behind/);

    const keyFile = home.environment().TRIVET_RBD_KEY_FILE!;
    const key = readFileSync(keyFile, 'utf8').trim();
    expect(statSync(keyFile).mode & 0o777).toBe(0o600);
    const logs = readdirSync(home.file('log')).map(name => readFileSync(join(home.file('log'), name), 'utf8'));
    expect(logs.some(text => text.includes(key))).toBe(false);

    await home.must('down');
    await up();
    await isUp();
  });

  it('says that it has none where the Ceph is somebody else’s', async () => {
    const { rgw } = parts();
    const home = homes.at('elsewhere');
    Object.assign(home.settings, {
      TRIVET_RGW_ENDPOINT: rgw!.endpoint,
      TRIVET_RGW_ACCESS_KEY_FILE: rgw!.accessKeyFile,
      TRIVET_RGW_SECRET_KEY_FILE: rgw!.secretKeyFile,
      TRIVET_REDIS_URL: 'none',
    });
    await home.must('up', '--detach', '--no-install', '--parts-only', '--with', 'rbd');
    expect((await home.status()).skipped).toMatchObject([
      { part: 'rbd', reason: expect.stringMatching(/rgw was not started/), remedy: 'set TRIVET_RBD_MONITORS' },
    ]);
    await home.must('down');
  });
});
