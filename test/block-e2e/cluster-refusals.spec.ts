import { createHash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { imageName } from '#backends/rbd/rbd-names';
import { rbdParts, type TestCluster, testCluster } from '#test/block-backend/rbd-harness';
import { watcherOf } from '#test/block-backend/watcher';
import { BlockJobs, hostOf, must } from '#test/block-crash/block-jobs';
import type { PoolOfCeph } from '#test/block-crash/pool-of-ceph';
import { hasTgtRbd } from '#test/exporter/rbd-images';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const MIB = 1024 ** 2;
const soon = () => AbortSignal.timeout(30_000);

/** What a cluster refuses or keeps, as callers of CSP and of the admin API are told it. */
describe.skipIf(!hasTgtRbd())('a cluster that does not let Trivet do something', () => {
  let appliance: TestAppliance;
  let cluster: TestCluster;
  let jobs: BlockJobs;
  let pool: PoolOfCeph;
  const token = `trivet_${randomBytes(32).toString('base64url')}`;

  beforeAll(async () => {
    cluster = testCluster(rbdParts()!.configuration);
    const env = { TRIVET_BLOCK_AUDIT_MS: '500', TRIVET_LEASE_MS: '6000' };
    appliance = await TestAppliance.start({ backend: 'fake', block: 'rbd', env });
    jobs = new BlockJobs(appliance);
    pool = appliance.blockFolders.ceph!;
    await until('the pool is ours', async () => (await appliance.database.query('SELECT FROM trivet.pool')).length > 0);
    await appliance.database.query(
      `INSERT INTO trivet.admin_token (tenant_id, id, user_id, kind, name, role, token_hash)
       SELECT tenant_id, gen_random_uuid(), id, 'token', 'test', role, $1 FROM trivet.tenant_user WHERE name = 'csp'`,
      [createHash('sha256').update(token).digest()],
    );
  }, 60_000);
  afterAll(async () => {
    await appliance?.close();
    cluster?.close();
  });

  const admin = async (method: string, path: string) => {
    const headers = { authorization: `Bearer ${token}` };
    const reply = await fetch(`${appliance.cspUrl}/api/v1${path}`, { method, headers });
    // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect
    return { status: reply.status, body: (await reply.json()) as any };
  };
  const operationOf = async (id: string, kind: string) => {
    const [row] = await appliance.database.query<{ id: string }>(
      'SELECT id FROM trivet.operation WHERE resource_id = $1 AND kind = $2 ORDER BY created_at DESC LIMIT 1',
      [id, kind],
    );
    return row && (await admin('GET', `/operations/${row.id}`)).body;
  };

  it('keeps an image that somebody has open: its deletion says who, waits, and ends when he is gone', async () => {
    const { id } = (await must(() => jobs.create('watched', MIB, { config: { destroy_on_delete: true } }))).body;
    const image = { pool: '', kind: 'volume', id, folder: '' } as const;
    const watcher = await watcherOf(cluster, rbdParts()!.configuration, pool.cephPool, imageName(image));
    try {
      const refused = await jobs.delete(id);
      expect(refused.code, refused.message).toMatch(/^(409|503)$/);
      const waits = await until('it says who', async () => {
        const operation = await operationOf(id, 'volume.delete');
        return operation?.error && operation;
      });
      expect(waits.error.message).toMatch(/is still open at 127\.0\.0\.1:/);
      expect(waits.state).toMatch(/pending|running/);
      expect((await jobs.delete(id)).code).not.toBe('GONE');
      expect(await pool.bytes('volume', id)).toHaveLength(MIB);
    } finally {
      await watcher.end();
    }
    await until('it is deleted', async () => (await operationOf(id, 'volume.delete'))?.state === 'succeeded', 60_000);
    await must(() => jobs.delete(id));
    await expect(pool.bytes('volume', id)).rejects.toThrow('is missing');
  });

  it('has an image of somebody else in the place of one that is gone: it is neither served, nor taken, nor deleted', async () => {
    const replaced = async (volume: string): Promise<string> => {
      const { id } = (await must(() => jobs.create(volume, MIB, { config: { destroy_on_delete: true } }))).body;
      const name = imageName({ pool: '', kind: 'volume', id, folder: '' });
      await cluster.admin.call(soon(), 'trash', pool.cephPool, name);
      await cluster.admin.call(soon(), 'create', pool.cephPool, name, MIB);
      await pool.write(id, 0, Buffer.from('theirs'));
      return id;
    };
    const [used, deleted] = [await replaced('used'), await replaced('deleted')];
    const host = hostOf('node');
    await must(() => jobs.host(host));
    const LEFT_ALONE = /image trivet-v-\S+ is not Trivet's, and is left alone/;
    for (const ask of [
      () => jobs.publish(used, host),
      () => jobs.snapshot(used, 'of-theirs'),
      () => jobs.expand(used, 2 * MIB),
      () => jobs.delete(deleted),
    ]) {
      const { code, message } = await ask();
      expect({ code, message }).toEqual({ code: '409', message: expect.stringMatching(LEFT_ALONE) });
    }
    expect(await operationOf(deleted, 'volume.delete')).toMatchObject({ state: 'needs_attention' });
    for (const id of [used, deleted]) expect((await pool.bytes('volume', id)).subarray(0, 6).toString()).toBe('theirs');
  });

  it('serves as many volumes of a pool as it may: one more is told why, and before that the metric says how near it is', async () => {
    const ratio = async () =>
      Number(/^trivet_pool_published_ratio_max (\S+)$/m.exec(await appliance.process('worker').metrics())?.[1]);
    await appliance.database.query(
      "UPDATE trivet.backend SET config = jsonb_set(config, '{exporter,maxUnits}', '2') WHERE kind = 'rbd'",
    );
    await appliance.process('worker').stop('SIGKILL');
    await appliance.worker();
    const host = hostOf('many');
    await must(() => jobs.host(host));
    const ids: string[] = [];
    for (const name of ['one', 'two', 'three']) ids.push((await must(() => jobs.create(name, MIB))).body.id);
    const [one = '', two = '', three = ''] = ids;
    await must(() => jobs.publish(one, host));
    expect(await ratio()).toBe(0.5);
    await must(() => jobs.publish(two, host));
    expect(await ratio()).toBe(1);
    const refused = await jobs.publish(three, host);
    expect(refused, refused.message).toMatchObject({ code: '507' });
    expect(refused.message).toMatch(/serves 2 volumes, and 2 at most \(maxUnits\)/);
    await must(() => jobs.unpublish(one, host));
    await must(() => jobs.publish(three, host));
    for (const id of [two, three]) await must(() => jobs.unpublish(id, host));
    expect(await ratio()).toBe(0);
  });

  it('does not let in a user without the caps: CSP, the test and the operation name what is missing', async () => {
    const { id } = (await must(() => jobs.create('kept', MIB))).body;
    const caps = ['mon', 'profile rbd', 'osd', `profile rbd-read-only pool=${pool.cephPool}`];
    const { user, key } = await cluster.makeUser([], caps);
    const keyFile = join(appliance.folder, 'reader-key');
    writeFileSync(keyFile, key, { mode: 0o600 });
    await appliance.process('worker').stop('SIGKILL');
    await appliance.registerAgain({ TRIVET_RBD_USER: user, TRIVET_RBD_KEY_FILE: keyFile });
    const lacks = `lacks osd 'profile rbd pool=${pool.cephPool}'`;
    const tested = await admin('POST', '/tenants/default/backends/ceph/test');
    expect(tested.body).toMatchObject({ ok: false });
    expect(JSON.stringify(tested.body.checks)).toContain(lacks);
    const asked = jobs.snapshot(id, 'denied');
    await appliance.worker();
    const refused = await asked;
    expect(refused.message).toContain(lacks);
    expect(refused.code).toBe('403');
    const [row] = await appliance.database.query<{ id: string }>(
      "SELECT id FROM trivet.operation WHERE kind = 'snapshot.create' ORDER BY created_at DESC LIMIT 1",
    );
    expect((await admin('GET', `/operations/${row!.id}`)).body.error).toMatchObject({
      kind: 'permission_denied',
      message: expect.stringContaining(lacks),
    });
  });
});
