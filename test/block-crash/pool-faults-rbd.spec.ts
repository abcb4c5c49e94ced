import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BlockJobs, hostOf, must, type Reply } from '#test/block-crash/block-jobs';
import { withSession } from '#test/block-crash/block-targets';
import { lastingMismatches } from '#test/block-crash/block-truth';
import { difference, pattern } from '#test/block-crash/pool-images';
import type { PoolOfCeph } from '#test/block-crash/pool-of-ceph';
import { hasTgtRbd } from '#test/exporter/rbd-images';
import { TestAppliance } from '#test/support/appliance';
import { OwnCeph } from '#test/support/own-ceph';
import { until } from '#test/support/parts';

const MIB = 1024 ** 2;
const DISK = 128 * MIB;
/** A disk is nearly full from 85 % on, and full from 95 %; at 97 % it refuses deletions, too. */
const NEARLY = 112 * MIB;
const FULL = 121 * MIB;

describe.skipIf(!hasTgtRbd())('a Ceph that is full, and one whose monitor is away', () => {
  let ceph: OwnCeph;
  let appliance: TestAppliance;
  let jobs: BlockJobs;
  let pool: PoolOfCeph;
  const host = hostOf('node');
  /** There before all, with content, and published. */
  let kept: { id: string; snapshot: string; bytes: Buffer };

  beforeAll(async () => {
    ceph = await OwnCeph.start(DISK);
    appliance = await TestAppliance.start({
      backend: 'fake',
      block: 'rbd',
      ceph: ceph.configuration,
      env: { TRIVET_LEASE_MS: '6000', TRIVET_RECONCILE_MS: '150', TRIVET_BLOCK_AUDIT_MS: '500' },
    });
    jobs = new BlockJobs(appliance);
    pool = appliance.blockFolders.ceph!;
    await until('the pool is ours', async () => (await appliance.database.query('SELECT FROM trivet.pool')).length > 0);
    const { id } = (await must(() => jobs.create('kept', MIB))).body;
    const bytes = pattern('kept', MIB);
    await pool.write(id, 0, bytes);
    kept = { id, bytes, snapshot: (await must(() => jobs.snapshot(id, 'before'))).body.id };
    await must(() => jobs.host(host));
    await must(() => jobs.publish(id, host));
  });
  afterAll(async () => {
    await appliance?.close();
    await ceph?.close();
  });

  const expectUnhurt = async (): Promise<void> => {
    await appliance.settled();
    expect(await lastingMismatches(appliance)).toEqual([]);
    expect(difference(await pool.bytes('volume', kept.id), kept.bytes)).toBeUndefined();
    expect(difference(await pool.bytes('snapshot', kept.snapshot), kept.bytes)).toBeUndefined();
  };
  const expectServed = async (): Promise<void> => {
    const read = await withSession(appliance, host, kept.id, session => session.read(0, MIB));
    expect(difference(read, kept.bytes)).toBeUndefined();
  };
  const expectNoRoom = ({ code, message }: Reply, state = 'is full'): void => {
    expect(code, message).toBe('507');
    expect(message).toContain(`insufficient storage space: pool ${pool.cephPool} of the cluster ${state}`);
  };
  const has = async (flag: string): Promise<boolean> => {
    const listed = JSON.parse(await ceph.ask('osd', 'pool', 'ls', 'detail', '-f', 'json'));
    const own = listed.find(({ pool_name }: { pool_name: string }) => pool_name === pool.cephPool);
    return own.flags_names.split(',').includes(flag);
  };

  it('has no room: nothing is half made, what is published is read, and what is there can be deleted', async () => {
    const gone = (await must(() => jobs.create('gone', MIB, { config: { destroy_on_delete: true } }))).body.id;
    await pool.fill(NEARLY);
    await until('the cluster is nearly full', () => has('nearfull'));
    // One that comes before it is seen is made, and its repeats are answered.
    let asked = 0;
    const another = () => jobs.create(`before-it-is-seen-${asked++}`, MIB);
    await until('that is seen', async () => (await another()).code === '507');
    expectNoRoom(await jobs.snapshot(kept.id, 'new'), 'is nearly full');
    await pool.fill(FULL);
    await until('the cluster is full', () => has('full'));
    await until('that is seen', async () => /is full/.test((await another()).message));
    expectNoRoom(await jobs.create('new', MIB));
    expectNoRoom(await jobs.create('thick', MIB, { config: { thick: true } }));
    expectNoRoom(await jobs.snapshot(kept.id, 'new'));
    expectNoRoom(await jobs.cloneOfSnapshot('new', kept.snapshot, MIB));
    expectNoRoom(await jobs.expand(kept.id, 2 * MIB));
    expect((await jobs.get('/volumes?name=new')).code).toBe('404');
    expect((await jobs.get(`/volumes/${kept.id}`)).body.size).toBe(MIB);
    await expectServed();
    await must(() => jobs.delete(gone));
    await expectUnhurt();
    await pool.free();
    await until('it has room again', async () => !(await has('full')) && !(await has('nearfull')));
    await until('that is seen', async () => (await another()).code === '200');
    const { id } = (await must(() => jobs.create('new', MIB))).body;
    await must(() => jobs.delete(id));
    await expectUnhurt();
  });

  it('has no monitor that answers: calls come again, and everything is as it was asked for when it is back', async () => {
    ceph.signal('mon', 'SIGSTOP');
    try {
      await appliance.process('worker').stop('SIGKILL');
      const refused = await jobs.snapshot(kept.id, 'without monitor');
      expect(refused, refused.message).toMatchObject({ code: '503', retryAfter: true });
      await appliance.worker();
      await until('the pool is down', async () => {
        const [row] = await appliance.database.query<{ state: string; reason: string }>(
          'SELECT state, reason FROM trivet.pool',
        );
        return row!.state === 'down' && /no monitor of the cluster answers/.test(row!.reason);
      });
    } finally {
      ceph.signal('mon', 'SIGCONT');
    }
    await must(() => jobs.snapshot(kept.id, 'without monitor'));
    await expectServed();
    await expectUnhurt();
  });
});
