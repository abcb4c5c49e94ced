import { rmSync, statSync, truncateSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BlockBackend, BlockStore } from '#backends/block-backend';
import type { TargetSpec } from '#backends/exporter';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import { BlockDriftCheck } from '#storage/block/drift/block-drift';
import { ExportSupervisor } from '#storage/block/publications/export-supervisor';
import { BlockHouse, hostRequest } from '#test/block-storage/block-house';
import { until } from '#test/support/parts';
import { targetName } from '#test/support/target-name';

const ALLOCATE = sql('test_allocate', 'SELECT trivet.allocate_target_id($1, $2, $3) AS tid');
const CHAP = { user: 'node-a', password: 'a-secret-of-16ch' };

describe('publications', () => {
  let house: BlockHouse;
  beforeAll(async () => {
    house = await BlockHouse.create();
  });
  afterAll(() => house?.close());

  const publish = (volumeId: string, host: string) =>
    house.publications.publish(house.caller(), volumeId, { host, accessProtocol: 'iscsi' });
  const unpublish = (volumeId: string, host: string) => house.publications.unpublish(house.caller(), volumeId, host);
  const initiators = (volumeId: string) =>
    house.store.exporter.targets.get(targetName(volumeId))?.initiators.map(({ iqn }) => iqn);
  const identity = async (volumeId: string) => house.store.exporter.targets.get(targetName(volumeId))?.identity;
  const published = async (id: string) => (await house.volumes.get(house.caller(), id)).published;
  const keep = () =>
    new ExportSupervisor(house.parts.database, { open: async () => house.store }).run(AbortSignal.timeout(10_000));
  const audit = (store: BlockStore = house.store) =>
    new BlockDriftCheck(house.parts.database, { open: async () => store }, 0).run(AbortSignal.timeout(10_000));
  /** The store whose images change while the audit looks at them. */
  const storeWith = (changes: (volumes: BlockBackend) => Partial<BlockBackend>): BlockStore => {
    const { volumes } = house.store;
    const changed = changes(volumes);
    const get = (_: BlockBackend, name: keyof BlockBackend) =>
      changed[name] ?? (volumes[name] as () => unknown).bind(volumes);
    return { ...house.store, volumes: new Proxy(volumes, { get: get as never }) };
  };
  const findings = (kind: string) =>
    house.testDatabase.query('SELECT subject FROM trivet.finding WHERE kind = $1', [kind]);
  const settled = () =>
    until('all operations ended', async () => {
      const open = "SELECT FROM trivet.operation WHERE state IN ('pending', 'running')";
      return (await house.testDatabase.query(open)).length === 0;
    });

  it('serves a volume to a host, the same way on every repeat, and takes it away', async () => {
    const { id } = await house.volume('one');
    const { uuid } = await house.host('a');
    const view = await publish(id, uuid);
    expect(view).toMatchObject({
      accessProtocol: 'iscsi',
      lun: 1,
      targetName: targetName(id),
      discoveryIps: ['127.0.0.1'],
      serialNumber: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    expect(await publish(id, uuid)).toEqual(view);
    expect(initiators(id)).toEqual(['iqn.2026-11.example:a']);
    expect(await published(id)).toBe(true);
    await unpublish(id, uuid);
    expect(initiators(id)).toBeUndefined();
    expect(await published(id)).toBe(false);
    await unpublish(id, uuid);
    await unpublish(id, 'a host that nobody knows');
    // The disk's identity stays with the volume.
    expect(await publish(id, uuid)).toEqual(view);
  });

  it('keeps what hosts know a disk by until the last one has left, and gives new ones the name of today', async () => {
    const { id } = await house.volume('of-last-year');
    const [first, second] = await Promise.all(['old-a', 'old-b'].map(name => house.host(name)));
    await publish(id, first!.uuid);
    expect((await identity(id))!.unitSerial).toBe('naa');
    // As a release before this one has published it, and migration 0011 has filled its row.
    const old = { name: `iqn.2026-01.dev.trivet:${id}`, vendor: 'TRIVET', product: 'VOLUME', unitSerial: 'uuid' };
    const set = 'UPDATE trivet.volume SET target = $2, applied_instance = NULL WHERE id = $1';
    await house.testDatabase.query(set, [id, JSON.stringify(old)]);
    house.store.exporter.targets.delete(targetName(id));
    const served = () => {
      const spec = house.store.exporter.targets.get(old.name);
      return spec && { ...spec.identity, initiators: spec.initiators.map(({ iqn }) => iqn).sort() };
    };
    const { name, ...asBefore } = old;
    await keep();
    await until('it is replayed as it was', () => served() !== undefined);
    expect(served()).toEqual({ ...asBefore, initiators: first!.iqns });
    await settled();
    expect((await publish(id, second!.uuid)).targetName).toBe(name);
    expect(served()).toEqual({ ...asBefore, initiators: [...first!.iqns, ...second!.iqns].sort() });
    await audit();
    expect(await findings('orphan_target')).toEqual([]);
    await unpublish(id, first!.uuid);
    expect((await publish(id, second!.uuid)).targetName).toBe(name);
    await unpublish(id, second!.uuid);
    expect(served()).toBeUndefined();
    expect((await publish(id, first!.uuid)).targetName).toBe(targetName(id));
    expect(await identity(id)).toEqual({ vendor: 'ACME', product: 'DISK', unitSerial: 'naa' });
    await unpublish(id, first!.uuid);
  });

  it('serves several hosts; the volume is published until the last one leaves', async () => {
    const { id } = await house.volume('several');
    const hosts = await Promise.all(['m', 'n', 'o'].map(name => house.host(name)));
    await Promise.all(hosts.map(({ uuid }) => publish(id, uuid)));
    expect(initiators(id)?.sort()).toEqual(hosts.flatMap(({ iqns }) => iqns).sort());
    await unpublish(id, hosts[0]!.uuid);
    expect(initiators(id)?.sort()).toEqual(['iqn.2026-11.example:n', 'iqn.2026-11.example:o']);
    expect(await published(id)).toBe(true);
    await Promise.all(hosts.map(({ uuid }) => unpublish(id, uuid)));
    expect(await published(id)).toBe(false);
  });

  it('gives each volume a target id of its own', async () => {
    const { uuid } = await house.host('ids');
    const volumes = await Promise.all(['id-1', 'id-2', 'id-3'].map(name => house.volume(name)));
    const views = await Promise.all(volumes.map(({ id }) => publish(id, uuid)));
    expect(new Set(views.map(({ serialNumber }) => serialNumber)).size).toBe(3);
  });

  it('refuses what cannot be served', async () => {
    const { id } = await house.volume('picky');
    await house.host('fc', { iqns: [], wwpns: ['5001438001234567'] });
    const fc = house.publications.publish(house.caller(), id, { host: 'uuid-of-fc', accessProtocol: 'fc' });
    await expect(fc).rejects.toMatchObject({ kind: 'invalid_argument', field: 'accessProtocol' });
    await expect(publish(id, 'uuid-of-fc')).rejects.toMatchObject({ kind: 'invalid_argument' });
    await expect(publish(id, 'nobody')).rejects.toMatchObject({ kind: 'not_found' });
    await expect(publish('01980000-0000-7000-8000-000000000000', 'uuid-of-fc')).rejects.toMatchObject({
      kind: 'not_found',
    });
  });

  it('keeps a published volume from its deletion, unless by force', async () => {
    const { id } = await house.volume('guarded');
    const { uuid } = await house.host('guard');
    await publish(id, uuid);
    await expect(house.volumes.delete(house.caller(), id, { force: false })).rejects.toMatchObject({
      kind: 'failed_precondition',
      field: 'published',
      message: 'Cannot delete a published volume',
    });
    await expect(house.hosts.delete(house.caller(), uuid)).rejects.toMatchObject({ field: 'published' });
    await house.volumes.delete(house.caller(), id, { force: true });
    expect(initiators(id)).toBeUndefined();
    await house.hosts.delete(house.caller(), uuid);
    await expect(house.hosts.get(house.caller(), uuid)).rejects.toMatchObject({ kind: 'not_found' });
  });

  it('lets one of publish and delete win, and never leaves a target without a volume', async () => {
    const { uuid } = await house.host('racer');
    const rounds = Array.from({ length: 10 }, async (_, n) => {
      const { id } = await house.volume(`race-${n}`);
      const outcomes = await Promise.allSettled([
        publish(id, uuid),
        house.volumes.delete(house.caller(), id, { force: false }),
      ]);
      const lives = (await house.volumes.find(house.caller(), `race-${n}`)) !== undefined;
      expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
      expect(outcomes[0]!.status === 'fulfilled').toBe(lives);
      expect(initiators(id) !== undefined).toBe(lives);
    });
    await Promise.all(rounds);
  });

  it('has a failed publication leave no trace', async () => {
    const { id } = await house.volume('fails');
    const { uuid } = await house.host('failing');
    house.store.exporter.failure = new StorageError('failed_precondition', 'no portal is there');
    await expect(publish(id, uuid)).rejects.toMatchObject({ message: 'no portal is there' });
    house.store.exporter.failure = undefined;
    expect(await published(id)).toBe(false);
    expect(initiators(id)).toBeUndefined();
    await publish(id, uuid);
  });

  it('applies new initiators and accounts of a host to its publications before it answers', async () => {
    const { id } = await house.volume('moving');
    const { uuid } = await house.host('moves');
    await publish(id, uuid);
    await house.host('moves', { iqns: ['iqn.2026-11.example:new-1', 'iqn.2026-11.example:new-2'] });
    expect(initiators(id)).toEqual(['iqn.2026-11.example:new-1', 'iqn.2026-11.example:new-2']);
    await house.host('moves', { iqns: ['iqn.2026-11.example:new-1'], chap: CHAP });
    const [spec] = [...house.store.exporter.targets.values()].filter(({ volumeId }) => volumeId === id);
    expect(spec?.initiators).toEqual([{ iqn: 'iqn.2026-11.example:new-1', chap: CHAP }]);
    expect(await publish(id, uuid)).toMatchObject({ chap: CHAP });
    expect(await house.hosts.get(house.caller(), uuid)).toMatchObject({ chapUser: CHAP.user });
  });

  it('applies them also when others, which they replace, are being applied', async () => {
    const { id } = await house.volume('held');
    const { uuid } = await house.host('held');
    await publish(id, uuid);
    await settled();
    const { exporter } = house.store;
    const gate = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const apply = exporter.applyTarget;
    exporter.applyTarget = async (target: TargetSpec) => {
      begun.resolve();
      await gate.promise;
      return apply.call(exporter, target);
    };
    const older = house.host('held', { iqns: ['iqn.2026-11.example:older'] });
    await begun.promise;
    const replay = "kind = 'volume.replay' AND state = 'running'";
    await house.testDatabase.query(`UPDATE trivet.operation SET waited = false WHERE ${replay}`);
    const newer = house.host('held', { iqns: ['iqn.2026-11.example:newer'] });
    await until('it has joined', async () => {
      return (await house.testDatabase.query(`SELECT FROM trivet.operation WHERE ${replay} AND waited`)).length === 1;
    });
    gate.resolve();
    await Promise.all([older, newer]);
    exporter.applyTarget = apply;
    expect(initiators(id)).toEqual(['iqn.2026-11.example:newer']);
    await unpublish(id, uuid);
  });

  it('gives a chap_user one password in a tenant, and a target accounts for all hosts or none', async () => {
    await house.host('first', { chap: { user: 'shared', password: 'first-secret-16c' } });
    await expect(
      house.host('second', { chap: { user: 'shared', password: 'other-secret-16c' } }),
    ).rejects.toMatchObject({ kind: 'already_exists', field: 'chap.user' });
    await house.host('plain');
    const { id } = await house.volume('mixed');
    await publish(id, 'uuid-of-first');
    await expect(publish(id, 'uuid-of-plain')).rejects.toMatchObject({ kind: 'failed_precondition' });
  });

  it('takes a new account of hosts that share one, host by host, while they share a volume', async () => {
    const [old, next] = ['old', 'new'].map(age => ({ user: `nodes-${age}`, password: `${age}-secret-16ch` }));
    const { id } = await house.volume('rotated');
    for (const name of ['rotor-1', 'rotor-2']) await publish(id, (await house.host(name, { chap: old })).uuid);
    const changed = house.host('rotor-1', { chap: { ...old!, password: next!.password } });
    await expect(changed).rejects.toMatchObject({
      message: expect.stringContaining('use another name, also to change'),
    });
    const accounts = () => {
      const [spec] = [...house.store.exporter.targets.values()].filter(({ volumeId }) => volumeId === id);
      return spec!.initiators.map(({ iqn, chap }) => `${iqn.split(':')[1]} ${chap?.user}`).sort();
    };
    for (const [at, wanted] of [
      ['nodes-new', 'nodes-old'],
      ['nodes-new', 'nodes-new'],
    ].entries()) {
      await house.host(`rotor-${at + 1}`, { chap: next });
      expect(accounts()).toEqual(wanted.map((user, n) => `rotor-${n + 1} ${user}`));
    }
    // Nobody has the old account any more, so its name is free for another password.
    await house.host('rotor-3', { chap: { ...old!, password: next!.password } });
  });

  it('keeps hosts that share a volume alike in having an account, and what they have when one is refused', async () => {
    const { id } = await house.volume('shared');
    const [left, right] = [await house.host('left'), await house.host('right')];
    await publish(id, left.uuid);
    await publish(id, right.uuid);
    const account = { user: 'left-account', password: 'a-secret-of-16ch' };
    await expect(house.host('left', { chap: account })).rejects.toMatchObject({
      kind: 'failed_precondition',
      field: 'chap.user',
      message: expect.stringContaining('unpublish'),
    });
    await settled();
    expect(initiators(id)).toHaveLength(2);
    await unpublish(id, right.uuid);
    await house.host('left', { chap: account });
    await settled();
    expect(initiators(id)).toEqual(['iqn.2026-11.example:left']);
  });

  it('leaves hosts what they have when a target cannot be applied again', async () => {
    const { id } = await house.volume('stays');
    const { uuid } = await house.host('settler');
    await publish(id, uuid);
    await settled();
    house.store.exporter.failure = new StorageError('failed_precondition', 'no room for another account');
    await expect(house.host('settler', { iqns: ['iqn.2026-11.example:other'] })).rejects.toMatchObject({
      message: expect.stringContaining('no room for another account'),
    });
    house.store.exporter.failure = undefined;
    expect(initiators(id)).toEqual(['iqn.2026-11.example:settler']);
    const [row] = await house.testDatabase.query('SELECT condition FROM trivet.volume WHERE id = $1', [id]);
    expect(row).toEqual({ condition: null });
    await unpublish(id, uuid);
    expect(initiators(id)).toBeUndefined();
  });

  it('gives a user name to one of two hosts that bring it with two passwords', async () => {
    for (let round = 0; round < 5; round++) {
      const post = (name: string) =>
        house.host(`${name}-${round}`, { chap: { user: `contested-${round}`, password: `a-secret-of-${name}` } });
      const outcomes = await Promise.allSettled([post('one1'), post('two2')]);
      expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    }
  });

  it('says that the target ids are used up', async () => {
    const { id } = await house.volume('one-too-many');
    const { uuid } = await house.host('one-too-many');
    const { targetIds } = house.parts;
    house.parts.targetIds = [6_000, 5_999];
    try {
      await expect(publish(id, uuid)).rejects.toMatchObject({
        kind: 'resource_exhausted',
        message: expect.stringContaining('TRIVET_TARGET_IDS'),
      });
    } finally {
      house.parts.targetIds = targetIds;
    }
  });

  // A gateway or a worker of the release before knows the target's id alone.
  it('takes what an older release publishes and ends, with the identity that it gives', async () => {
    const { id } = await house.volume('by-an-older-release');
    const set = (tid: number | null) =>
      house.testDatabase.query('UPDATE trivet.volume SET tid = $2 WHERE id = $1', [id, tid]);
    const row = async () =>
      (await house.testDatabase.query<{ target: object }>('SELECT target FROM trivet.volume WHERE id = $1', [id]))[0]!
        .target;
    await set(7_000);
    expect(await row()).toEqual({
      name: `iqn.2026-01.dev.trivet:${id}`,
      vendor: 'TRIVET',
      product: 'VOLUME',
      unitSerial: 'uuid',
    });
    await set(null);
    expect(await row()).toBeNull();
  });

  it('gives target ids of its range, each to one volume, and again only after a week of rest', async () => {
    const [first, second, third] = [uuidv7(), uuidv7(), uuidv7()];
    const take = async (volumeId: string) => {
      const rows = await house.parts.database.withTenant(house.tenantId, tx =>
        tx.query<{ tid: number | null }>(ALLOCATE, [volumeId, 5_000, 5_001]),
      );
      return rows[0]?.tid;
    };
    expect(await take(first)).toBe(5_000);
    expect(await take(first)).toBe(5_000);
    await house.testDatabase.query('SELECT trivet.release_target_id($1)', [first]);
    expect(await take(second)).toBe(5_001);
    expect(await take(third)).toBeNull();
    const restFor = (days: number) =>
      house.testDatabase.query(
        `UPDATE trivet.target_id SET released_at = now() - make_interval(days => $1) WHERE tid = 5000`,
        [days],
      );
    await restFor(6);
    expect(await take(third)).toBeNull();
    await restFor(8);
    expect(await take(third)).toBe(5_000);
  });

  it('makes one host of twenty parallel posts', async () => {
    await Promise.all(Array.from({ length: 20 }, () => house.host('crowd')));
    expect(await house.hosts.list(house.caller(), { uuid: 'uuid-of-crowd' })).toHaveLength(1);
  });

  it('applies all targets again after a restart of their daemon, with the same identities', async () => {
    const { id } = await house.volume('restarted');
    const { uuid } = await house.host('waits');
    const view = await publish(id, uuid);
    await settled();
    house.store.exporter.restart();
    expect(initiators(id)).toBeUndefined();
    await keep();
    await until('the target is back', () => initiators(id) !== undefined);
    expect(await publish(id, uuid)).toEqual(view);
    await settled();
    const [{ n }] = (await house.testDatabase.query<{ n: number }>(
      "SELECT count(*)::int AS n FROM trivet.operation WHERE kind = 'volume.replay'",
    )) as [{ n: number }];
    await keep();
    expect(await house.testDatabase.query("SELECT FROM trivet.operation WHERE kind = 'volume.replay'")).toHaveLength(n);
  });

  it('withholds the publication of a lost image, reports it, and never makes it anew', async () => {
    const { id } = await house.volume('lost');
    const { uuid } = await house.host('unlucky');
    await publish(id, uuid);
    rmSync(house.store.volumes.pathOf({ pool: 'default', kind: 'volume', id, folder: '' }));
    await audit();
    await until('the target is gone', () => initiators(id) === undefined);
    await settled();
    const [row] = await house.testDatabase.query<{ condition: { type: string } }>(
      'SELECT condition FROM trivet.volume WHERE id = $1',
      [id],
    );
    expect(row?.condition).toMatchObject({ type: 'lost', message: expect.stringContaining('is missing') });
    expect(
      await house.testDatabase.query(
        "SELECT FROM trivet.finding WHERE kind = 'lost_image' AND subject = 'volume lost'",
      ),
    ).toHaveLength(1);
    await expect(publish(id, uuid)).rejects.toMatchObject({ kind: 'failed_precondition' });
    await unpublish(id, uuid);
    expect(await published(id)).toBe(false);
  });

  it('withholds what has another size than was promised, and serves it again when it is put right', async () => {
    const { id } = await house.volume('cut-off');
    const { uuid } = await house.host('careful');
    await publish(id, uuid);
    await settled();
    const path = house.store.volumes.pathOf({ pool: 'default', kind: 'volume', id, folder: '' });
    const { size } = statSync(path);
    truncateSync(path, size - 512);
    await audit();
    await until('the target is gone', () => initiators(id) === undefined);
    await settled();
    truncateSync(path, size);
    await audit();
    await until('the target is back', () => initiators(id) !== undefined);
  });

  it('serves on what is larger than promised, says so, and has it by an expansion', async () => {
    const { id, sizeBytes } = await house.volume('given-up');
    const { uuid } = await house.host('patient');
    await publish(id, uuid);
    await settled();
    const path = house.store.volumes.pathOf({ pool: 'default', kind: 'volume', id, folder: '' });
    // As a worker leaves it whose expansion somebody gave up between the file and the target.
    truncateSync(path, Number(sizeBytes) * 2);
    await audit();
    await settled();
    const row = () => house.testDatabase.query('SELECT condition FROM trivet.volume WHERE id = $1', [id]);
    expect(await row()).toEqual([{ condition: null }]);
    expect(initiators(id)).toBeDefined();
    expect(await findings('lost_image')).not.toContainEqual({ subject: 'volume given-up' });
    expect(await findings('larger_image')).toEqual([{ subject: 'volume given-up' }]);
    await house.volumes.update(house.caller(), id, { sizeBytes: sizeBytes * 2n });
    expect(statSync(path).size).toBe(Number(sizeBytes) * 2);
    await audit();
    expect(await findings('larger_image')).toEqual([]);
    expect(await row()).toEqual([{ condition: null }]);
  });

  it('applies again what somebody changed at the exporter, and reports targets that nobody knows', async () => {
    const { id } = await house.volume('meddled');
    const { uuid } = await house.host('meddler');
    await publish(id, uuid);
    await settled();
    const { targets } = house.store.exporter;
    const spec = [...targets.values()].find(({ volumeId }) => volumeId === id)!;
    targets.set(spec.iqn, { ...spec, initiators: [{ iqn: 'iqn.2026-11.example:intruder' }] });
    targets.set('iqn.2026-01.dev.trivet:nobody', { ...spec, iqn: 'iqn.2026-01.dev.trivet:nobody', tid: 999 });
    await audit();
    await until('it is repaired', () => initiators(id)?.[0] === 'iqn.2026-11.example:meddler');
    expect(targets.has('iqn.2026-01.dev.trivet:nobody')).toBe(true);
    expect(
      await house.testDatabase.query(
        "SELECT FROM trivet.finding WHERE kind = 'orphan_target' AND subject LIKE '%nobody'",
      ),
    ).toHaveLength(1);
    targets.delete('iqn.2026-01.dev.trivet:nobody');
    await audit();
    expect(await house.testDatabase.query("SELECT FROM trivet.finding WHERE kind = 'orphan_target'")).toHaveLength(0);
  });

  it('makes a target anew that somebody took away', async () => {
    const { id } = await house.volume('taken-away');
    const { uuid } = await house.host('bereft');
    await publish(id, uuid);
    await settled();
    house.store.exporter.targets.delete(targetName(id));
    await audit();
    await until('the target is back', () => initiators(id)?.[0] === 'iqn.2026-11.example:bereft');
  });

  it('takes no volume for lost that grows while it is looked at', async () => {
    const { id, sizeBytes } = await house.volume('growing');
    let grown = false;
    const store = storeWith(volumes => ({
      async inspectImage(image, signal) {
        if (image.id === id && !grown) {
          await house.volumes.update(house.caller(), id, { sizeBytes: sizeBytes * 2n });
          grown = true;
        }
        return volumes.inspectImage(image, signal);
      },
    }));
    await audit(store);
    expect(grown).toBe(true);
    const [row] = await house.testDatabase.query('SELECT condition FROM trivet.volume WHERE id = $1', [id]);
    expect(row).toEqual({ condition: null });
    expect(await findings('lost_image')).not.toContainEqual({ subject: 'volume growing' });
  });

  it('takes nothing for an orphan that is deleted while it is listed', async () => {
    const { id } = await house.volume('short-lived');
    const store = storeWith(volumes => ({
      async *listImages(pool, signal, share) {
        yield* volumes.listImages(pool, signal, share);
        await house.volumes.delete(house.caller(), id, { force: false });
      },
    }));
    await audit(store);
    expect(await findings('orphan_image')).toEqual([]);
  });
});

describe('publications beyond loopback', () => {
  let house: BlockHouse;
  afterAll(() => house?.close());

  it.each([
    { withoutChap: false, chap: undefined, refused: true },
    { withoutChap: false, chap: CHAP, refused: false },
    { withoutChap: true, chap: undefined, refused: false },
  ])('are given to a host by its account, or by the setting: %o', async ({ withoutChap, chap, refused }) => {
    await house?.close();
    house = await BlockHouse.create({ portals: ['192.0.2.1:3260', '192.0.2.2:3261'], withoutChap });
    const { id } = await house.volume('far');
    await house.hosts.put(house.caller(), { ...hostRequest('far'), chap });
    const published = house.publications.publish(house.caller(), id, { host: 'uuid-of-far', accessProtocol: 'iscsi' });
    if (refused) await expect(published).rejects.toMatchObject({ kind: 'failed_precondition' });
    else {
      expect(await published).toMatchObject({ discoveryIps: ['192.0.2.1'] });
      const without = house.host('far');
      if (withoutChap) await without;
      else await expect(without).rejects.toMatchObject({ kind: 'failed_precondition', field: 'chap.user' });
    }
  });

  it('are at the addresses of the pool that the volume is in', async () => {
    await house?.close();
    house = await BlockHouse.create({ portals: ['192.0.2.1:3260'], morePools: ['slow'], withoutChap: true });
    await house.testDatabase.query("UPDATE trivet.pool SET portals = '{192.0.2.2:3260}' WHERE name = 'slow'", []);
    await house.host('far');
    for (const [pool, address] of [
      ['default', '192.0.2.1'],
      ['slow', '192.0.2.2'],
    ] as const) {
      const { id } = await house.volume(`in-${pool}`, { pool });
      expect(
        await house.publications.publish(house.caller(), id, { host: 'uuid-of-far', accessProtocol: 'iscsi' }),
      ).toMatchObject({ discoveryIps: [address] });
    }
  });

  it('are refused where no node of HPE’s driver comes, instead of letting it look for a disk in vain', async () => {
    await house?.close();
    house = await BlockHouse.create({ portals: ['192.0.2.2:3261'], withoutChap: true });
    const { id } = await house.volume('out-of-the-way');
    await house.host('far');
    const publish = () =>
      house.publications.publish(house.caller(), id, { host: 'uuid-of-far', accessProtocol: 'iscsi' });
    await expect(publish()).rejects.toMatchObject({
      kind: 'failed_precondition',
      message: expect.stringMatching(
        /^pool default is served at 192\.0\.2\.2:3261, and nodes .* port 3260 .*: serve it/,
      ),
    });
    await house.testDatabase.query("UPDATE trivet.pool SET portals = '{192.0.2.3:3260}'", []);
    expect(await publish()).toMatchObject({ discoveryIps: ['192.0.2.3'] });
  });
});
