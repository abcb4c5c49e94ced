import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { CosiClient } from '#test/cosi/client';
import { parts } from '#test/support/parts';
import { TestHomes } from './cli.js';

const homes = new TestHomes();
afterAll(() => homes.clear());

describe.skipIf(!parts().azurite)('up without Ceph', { timeout: 120_000 }, () => {
  it('has buckets of Azurite, which the demo walks, and keeps them', async () => {
    const home = homes.at('home');
    home.path = homes.folderAt('path', 0o755);
    for (const name of ['test', 'sh', 'npm']) symlinkSync(`/usr/bin/${name}`, join(home.path, name));
    const up = () => home.must('up', '--detach', '--no-install');
    const said = await up();
    expect(said).toContain(
      'azurite: buckets are containers of Azurite, an emulator of Azure Blob, for trying out alone',
    );
    const { state, cosi, backends, skipped } = await home.status();
    expect({ state, skipped: skipped.map(({ part }) => part) }).toEqual({
      state: 'ready',
      skipped: expect.not.arrayContaining(['azurite']),
    });
    expect(skipped).toContainEqual(expect.objectContaining({ part: 'rgw' }));
    expect(cosi).toBeDefined();
    expect(backends).toContainEqual(expect.objectContaining({ name: 'azure', state: 'up' }));

    const demo = await home.must('demo');
    expect(demo).toMatch(/reader may not put/);
    expect(demo).toContain('demo: done, and nothing is left behind');
    expect((await home.run('doctor')).stdout).toMatch(
      /^ok +object store: http:\/\/127\.0\.0\.1:\d+\/trivettrying answers/m,
    );

    const { TRIVET_AZURE_ENDPOINT: before } = home.environment();
    const bucket = { name: 'kept', protocols: [{ type: 'AZURE' }] };
    expect(await called(cosi!.endpoint, 'DriverCreateBucket', bucket)).toBe('OK');
    await home.must('down');
    await up();
    expect(home.environment().TRIVET_AZURE_ENDPOINT).toBe(before);
    const { items } = JSON.parse(await home.must('bucket', 'list', '--json'));
    expect(items).toMatchObject([{ name: 'kept', state: 'ready' }]);
    expect(await called(cosi!.endpoint, 'DriverDeleteBucket', { bucket_id: 'kept' })).toBe('OK');
  });
});

async function called(endpoint: string, method: string, request: object): Promise<string> {
  const client = new CosiClient(endpoint.replace('unix://', ''));
  try {
    return (await client.call('r1', method, request)).code;
  } finally {
    client.close();
  }
}
