import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { periodAt } from '#storage/block/protection/periods';
import { protect } from '#storage/block/protection/protect';
import { armFailpoints, disarmFailpoints } from '#test/failpoints/failpoints';
import { ProtectionHouse, weekly } from '#test/protection/protection-house';

/** One snapshot a period, whatever happens (invariant E10). Time passes by SQL: what is due stands in Postgres. */
let house: ProtectionHouse;
const WEEKLY = weekly('weekly', 3);
beforeAll(async () => {
  house = await ProtectionHouse.create();
  await house.templates.add('mine', [WEEKLY]);
});
afterEach(async () => {
  disarmFailpoints();
  await house.empty();
});
afterAll(() => house?.close());

describe('a scheduled snapshot', () => {
  it('is not taken before the first period that begins after the volume was protected', async () => {
    const volume = await house.volume('mine');
    await house.round();
    expect(await house.snapshots(volume)).toEqual([]);
    const next = await house.nextRun(volume);
    expect(next.getTime()).toBeGreaterThan(Date.now());
    expect(next.getTime() - periodAt(WEEKLY, new Date()).getTime()).toBe(7 * 86_400_000);
  });

  it('is taken once when it is due, by an accepted operation, with its run written beside it', async () => {
    const volume = await house.volume('mine');
    await house.aWeekPasses(volume);
    await house.round();
    await house.round();
    const period = periodAt(WEEKLY, new Date());
    const [snapshot, ...more] = await house.snapshots(volume);
    expect(more).toEqual([]);
    expect(snapshot).toMatchObject({
      name: `mine-weekly-${period.toISOString().slice(0, 16).replace(':', '')}Z`,
      state: 'creating',
    });
    expect(await house.operations('snapshot.create')).toEqual([{ resource_id: snapshot!.id }]);
    expect(await house.query('SELECT schedule, period, snapshot_id FROM trivet.protection_run')).toEqual([
      { schedule: 'weekly', period, snapshot_id: snapshot!.id },
    ]);
    expect((await house.nextRun(volume)).getTime()).toBeGreaterThan(Date.now());
  });

  it('of missed periods is taken for the newest alone', async () => {
    const volume = await house.volume('mine');
    await house.aWeekPasses(volume, 10);
    await house.round();
    await house.settle();
    await house.round();
    expect(await house.snapshots(volume)).toHaveLength(1);
    expect(await house.query('SELECT period FROM trivet.protection_run')).toEqual([
      { period: periodAt(WEEKLY, new Date()) },
    ]);
  });

  it('is not taken a second time when the clock or the schedule goes back, nor when it was deleted by hand', async () => {
    const volume = await house.volume('mine');
    await house.aWeekPasses(volume);
    await house.round();
    await house.settle();
    await house.query("UPDATE trivet.snapshot SET state = 'gone'");
    await house.query("UPDATE trivet.volume_protection SET next_run_at = now() - interval '1 week'");
    await house.round();
    await house.prune();
    await house.query("UPDATE trivet.volume_protection SET next_run_at = now() - interval '1 week'");
    await house.round();
    expect(await house.operations('snapshot.create')).toHaveLength(1);
    expect((await house.nextRun(volume)).getTime()).toBeGreaterThan(Date.now());
  });

  it('is taken under another name when somebody has that one, and theirs is left alone', async () => {
    const volume = await house.volume('mine');
    await house.aWeekPasses(volume);
    await house.round();
    await house.settle();
    await house.query('DELETE FROM trivet.protection_run');
    await house.query('UPDATE trivet.volume_protection SET next_run_at = now()');
    await house.round();
    const [theirs, ours] = await house.snapshots(volume);
    expect(ours!.name).toBe(`${theirs!.name}-${ours!.id}`);
    expect(await house.query('SELECT snapshot_id FROM trivet.protection_run')).toEqual([{ snapshot_id: ours!.id }]);
  });
});

describe('schedulers', () => {
  it('that run at once take each snapshot once', async () => {
    const volumes = await Promise.all(Array.from({ length: 12 }, () => house.volume('mine')));
    for (const volume of volumes) await house.aWeekPasses(volume);
    await Promise.all([house.round(), house.round(), house.round(), house.round()]);
    await house.round();
    for (const volume of volumes) expect(await house.snapshots(volume)).toHaveLength(1);
    expect(await house.operations('snapshot.create')).toHaveLength(12);
  });

  it('wait for nobody who has the volume locked, and come back', async () => {
    const volume = await house.volume('mine');
    await house.aWeekPasses(volume);
    await house.inTenant(async tx => {
      await tx.query({ name: 'test_lock', text: 'SELECT FROM trivet.volume WHERE id = $1 FOR UPDATE' }, [volume]);
      await house.round();
      expect(await house.snapshots(volume)).toEqual([]);
    });
    await house.round();
    expect(await house.snapshots(volume)).toHaveLength(1);
  });

  it('that end before the commit leave nothing, and the next one takes it', async () => {
    const volume = await house.volume('mine');
    await house.aWeekPasses(volume);
    armFailpoints('protection:before-accept=error');
    await house.round();
    disarmFailpoints();
    expect(await house.snapshots(volume)).toEqual([]);
    expect(await house.query('SELECT FROM trivet.protection_run')).toEqual([]);
    await house.query('UPDATE trivet.volume_protection SET next_run_at = now()');
    await house.round();
    expect(await house.snapshots(volume)).toHaveLength(1);
  });

  it('that end right after the commit are not repeated by the next one', async () => {
    const volume = await house.volume('mine');
    await house.aWeekPasses(volume);
    armFailpoints('protection:accepted=error');
    await house.round();
    disarmFailpoints();
    await house.round();
    await house.settle();
    await house.query('UPDATE trivet.volume_protection SET next_run_at = now()');
    await house.round();
    expect(await house.snapshots(volume)).toHaveLength(1);
  });

  it('stop between two snapshots when they are told to', async () => {
    const volume = await house.volume('mine');
    await house.aWeekPasses(volume);
    await house.round(AbortSignal.abort());
    expect(await house.snapshots(volume)).toEqual([]);
  });

  it('serve every tenant, each by its own templates', async () => {
    const neighbour = await house.neighbour();
    await neighbour.templates.add('mine', [WEEKLY, { ...WEEKLY, name: 'again' }]);
    const [ours, theirs] = [await house.volume('mine'), await neighbour.volume('mine')];
    for (const volume of [ours, theirs]) await house.aWeekPasses(volume);
    await house.round();
    await house.settle();
    await house.round();
    expect(await house.snapshots(ours)).toHaveLength(1);
    expect(await house.snapshots(theirs)).toHaveLength(2);
  });
});

describe('a volume that cannot be snapshotted now', () => {
  it('in a pool above 85 % waits, a finding says so, and it goes on when there is room', async () => {
    const volume = await house.volume('mine');
    await house.aWeekPasses(volume);
    await house.query('UPDATE trivet.pool SET used_bytes = total_bytes * 0.86');
    await house.round();
    expect(await house.snapshots(volume)).toEqual([]);
    const [finding] = await house.query<{ kind: string; subject: string; message: string }>(
      'SELECT kind, subject, message FROM trivet.finding',
    );
    expect(finding).toMatchObject({ kind: 'protection_paused', subject: 'main' });
    expect(finding!.message).toContain('86 %');
    const waiting = (await house.nextRun(volume)).getTime() - Date.now();
    expect(waiting).toBeGreaterThan(240_000);
    expect(waiting).toBeLessThan(301_000);

    await house.query('UPDATE trivet.pool SET used_bytes = 0');
    await house.query('UPDATE trivet.volume_protection SET next_run_at = now()');
    await house.round();
    expect(await house.snapshots(volume)).toHaveLength(1);
    expect(await house.query('SELECT FROM trivet.finding')).toEqual([]);
  });

  it('leaves no finding behind when nobody waits any more', async () => {
    const volume = await house.volume('mine');
    await house.aWeekPasses(volume);
    await house.query('UPDATE trivet.pool SET used_bytes = total_bytes');
    await house.round();
    expect(await house.query('SELECT FROM trivet.finding')).toHaveLength(1);
    await house.inTenant(tx => protect(tx, house.tenantId, volume, null));
    await house.round();
    expect(await house.query('SELECT FROM trivet.finding')).toEqual([]);
  });

  it('in a pool that is down is tried again within its period', async () => {
    const volume = await house.volume('mine');
    await house.aWeekPasses(volume);
    await house.query("UPDATE trivet.pool SET state = 'down', reason = 'not mounted'");
    await house.round();
    expect((await house.nextRun(volume)).getTime() - Date.now()).toBeLessThan(61_000);
    await house.query("UPDATE trivet.pool SET state = 'up'");
    await house.query('UPDATE trivet.volume_protection SET next_run_at = now()');
    await house.round();
    expect(await house.snapshots(volume)).toHaveLength(1);
  });

  it('whose last one is still being made gets no second one meanwhile, however long that takes', async () => {
    const volume = await house.volume('mine');
    await house.aWeekPasses(volume);
    await house.round();
    await house.aWeekPasses(volume);
    await house.round();
    expect(await house.snapshots(volume)).toHaveLength(1);
    expect((await house.nextRun(volume)).getTime() - Date.now()).toBeLessThan(61_000);
    await house.settle();
    await house.query('UPDATE trivet.volume_protection SET next_run_at = now()');
    await house.round();
    expect(await house.snapshots(volume)).toHaveLength(2);
  });

  it.each(['creating', 'deleting', 'binned'])(
    'because it is %s misses this period and keeps its template',
    async state => {
      const volume = await house.volume('mine');
      await house.aWeekPasses(volume);
      await house.query('UPDATE trivet.volume SET state = $1', [state]);
      await house.round();
      expect(await house.snapshots(volume)).toEqual([]);
      expect((await house.nextRun(volume)).getTime()).toBeGreaterThan(Date.now() + 3_600_000);
    },
  );

  it('because it is gone is let go', async () => {
    const volume = await house.volume('mine');
    await house.aWeekPasses(volume);
    await house.query("UPDATE trivet.volume SET state = 'gone'");
    await house.round();
    expect(await house.query('SELECT FROM trivet.volume_protection')).toEqual([]);
  });

  it('holds up no other', async () => {
    const [lost, fine] = [await house.volume('mine'), await house.volume('mine')];
    for (const volume of [lost, fine]) await house.aWeekPasses(volume);
    await house.query(`UPDATE trivet.volume SET condition = '{"type": "lost", "message": "gone"}' WHERE id = $1`, [
      lost,
    ]);
    await house.round();
    expect(await house.snapshots(lost)).toEqual([]);
    expect((await house.nextRun(lost)).getTime()).toBeGreaterThan(Date.now() + 3_600_000);
    expect(await house.snapshots(fine)).toHaveLength(1);
  });
});
