import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { weekly } from '#test/protection/protection-house';
import { type DaemonProcess, TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const MIB = 1024 ** 2;

/** Workers as they run in production, killed where it hurts: a period has one snapshot, and its image is there. */
describe.each([
  ['with Redis', true],
  ['without Redis', false],
])('an appliance %s', (_, redis) => {
  let appliance: TestAppliance;
  let volume: string;
  let workers: DaemonProcess[] = [];
  beforeAll(async () => {
    appliance = await TestAppliance.create({ backend: 'fake', block: 'fake', redis });
    await appliance.gateway();
    const worker = await appliance.worker();
    await until('the pool was looked at', async () => (await query('SELECT FROM trivet.pool')).length === 1);
    await query(
      `INSERT INTO trivet.protection_template (tenant_id, id, name, schedules)
       SELECT id, gen_random_uuid(), 'mine', $1 FROM trivet.tenant`,
      [JSON.stringify([weekly('weekly', 2)])],
    );
    const created = await appliance.driver().createVolume('pvc-1', 64 * MIB, { protection_template: 'mine' });
    volume = created.id;
    await worker.stop();
  });
  afterEach(async () => {
    await Promise.all(workers.map(worker => worker.stop()));
    workers = [];
  });
  afterAll(() => appliance?.close());

  const query = <Row = Record<string, unknown>>(text: string, params: unknown[] = []) =>
    appliance.database.query<Row>(text, params);
  const snapshots = async () => (await appliance.driver().snapshotsOf(volume)).map(({ id }) => id);
  const images = () => {
    const folder = join(appliance.poolPath, 'snapshots');
    return existsSync(folder)
      ? readdirSync(folder, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
      : [];
  };
  async function start(failpoint?: string): Promise<DaemonProcess> {
    const worker = await appliance.worker(failpoint === undefined ? {} : { TRIVET_FAILPOINT: failpoint });
    workers.push(worker);
    return worker;
  }
  /** Nothing is due, and every operation has ended. */
  async function quiet(): Promise<void> {
    await until('nothing is due', async () => (await query('SELECT FROM trivet.protection_due()')).length === 0);
    await appliance.settled();
  }
  const due = () => query("UPDATE trivet.volume_protection SET next_run_at = now() - interval '1 minute'");

  it('protects the volume from its creation on', async () => {
    expect(await query('SELECT volume_id, schedule FROM trivet.volume_protection')).toEqual([
      { volume_id: volume, schedule: 'weekly' },
    ]);
  });

  it.each([
    ['before the commit', 'protection:before-accept=kill'],
    ['after the commit', 'protection:accepted=kill'],
  ])('takes one snapshot when a worker is killed %s', async (_where, failpoint) => {
    await query(
      'UPDATE trivet.protection_run SET period = period - (SELECT count(*) FROM trivet.protection_run) * $1::interval',
      ['1 week'],
    );
    await query("UPDATE trivet.snapshot SET name = name || '-' || id");
    const before = await snapshots();
    await due();
    const first = await appliance.worker({ TRIVET_FAILPOINT: failpoint }).catch(() => undefined);
    expect(await appliance.process('worker').ended()).toMatchObject({ signal: 'SIGKILL' });
    expect(first === undefined || first.exited).toBe(true);
    await Promise.all([start(), start()]);
    await quiet();
    await due();
    await quiet();
    const after = await snapshots();
    expect(after).toHaveLength(before.length + 1);
    expect(after.slice(0, -1)).toEqual(before);
    expect(images()).toHaveLength(after.length);
  });

  it('prunes what is beyond the two that are retained, file and all', async () => {
    await query(
      "UPDATE trivet.protection_run SET period = period - interval '1 week' * (SELECT count(*) FROM trivet.protection_run)",
    );
    await query("UPDATE trivet.snapshot SET name = name || '-' || id");
    const before = await snapshots();
    expect(before).toHaveLength(2);
    await due();
    await start();
    await until('the third one is there', async () => (await snapshots()).length === 3);
    await query('UPDATE trivet.volume_protection SET prune_at = now()');
    await until('the first one is pruned', async () => (await snapshots()).length === 2);
    await quiet();
    expect(await snapshots()).not.toContain(before[0]);
    expect(images()).toHaveLength(2);
  });
});
