import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type ImageRef, UNOPENED } from '#backends/block-backend';
import { BlockBackendBench, MIB } from '#backends/conformance/block-backend.conformance';
import { CephProcess } from '#backends/rbd/ceph-process';
import { imageName } from '#backends/rbd/rbd-names';
import { unleased } from '#platform/lease-signal';
import { hearApplianceTime } from '#platform/process/appliance-time';
import { hookFailpoints } from '#platform/process/failpoint';
import { type RbdHarness, rbdHarness, rbdParts } from '#test/block-backend/rbd-harness';

const rbd = rbdParts();
const run = promisify(execFile);
const soon = () => unleased(AbortSignal.timeout(60_000));
const HOUR_MS = 3_600_000;

/** What librbd leaves whose process is killed inside one call: made here step by step, in the order in which librbd does it. */
describe.skipIf(!rbd)('what a call of librbd leaves that was cut off', () => {
  let harness: RbdHarness;
  let bench: BlockBackendBench;
  let folder: string;
  beforeAll(async () => {
    harness = await rbdHarness(rbd!.configuration);
    bench = new BlockBackendBench(harness);
    folder = mkdtempSync(join(tmpdir(), 'trivet-leftovers-'));
  });
  afterEach(async () => {
    hookFailpoints();
    await bench.clean();
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await harness?.close();
  });

  const admin = () => harness.cluster.admin;
  const rados = (...args: string[]) => run('rados', ['-c', rbd!.configuration, '-p', harness.cephPool, ...args]);
  const names = () => admin().call(soon(), 'names', harness.cephPool);
  const trash = async () => (await admin().call(soon(), 'trashed', harness.cephPool)).map(({ id }) => id);
  const idOf = async (name: string) => (await admin().call(soon(), 'look', harness.cephPool, { name }))!.id;
  const create = (name: string) => admin().call(soon(), 'create', harness.cephPool, name, MIB);
  const temporaryOf = (id: string) => `trivet-t-${id}-${randomUUID()}-1.0123456789ab`;
  /** As an operation on it does that ended so long ago. */
  const enteredBefore = (id: string, ms: number) => {
    const fence = `${'1'.padStart(20, '0')} ${new Date(Date.now() - ms).toISOString()}`;
    const object = `trivet_records.${id.at(-1)}`;
    return admin().call(soon(), 'changeKeys', harness.cephPool, object, [], { [id]: fence }, []);
  };
  const audit = () => bench.listed();
  /** The new name leads to the image, and the old one still does. */
  const nameAlso = async (from: string, to: string) => {
    const file = join(folder, 'name');
    await rados('get', `rbd_id.${from}`, file);
    await rados('put', `rbd_id.${to}`, file);
  };

  it('of a creation before its header, is removed by the audit an hour later, and nothing of others', async () => {
    const [old, young, foreign] = [randomUUID(), randomUUID(), randomUUID()];
    const made = [old, young, foreign].map(temporaryOf);
    for (const name of made) {
      await create(name);
      await rados('rm', `rbd_header.${await idOf(name)}`);
    }
    await enteredBefore(old, 2 * HOUR_MS);
    await enteredBefore(young, HOUR_MS / 2);
    await audit();
    expect((await names()).filter(name => made.includes(name)).sort()).toEqual(made.slice(1).sort());
    await expect(rados('stat', `rbd_id.${made[0]}`)).rejects.toThrow(/No such file/);
    for (const name of made.slice(1))
      await run('rbd', ['-c', rbd!.configuration, 'rm', `${harness.cephPool}/${name}`, '--no-progress']);
  });

  it('is judged by the time of the appliance, whatever the clock of the host says that looks', async () => {
    const young = randomUUID();
    const name = temporaryOf(young);
    await create(name);
    await rados('rm', `rbd_header.${await idOf(name)}`);
    await enteredBefore(young, HOUR_MS / 2);
    hearApplianceTime(Date.now());
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10 * HOUR_MS });
    try {
      await audit();
    } finally {
      vi.useRealTimers();
    }
    expect(await names()).toContain(name);
    await run('rbd', ['-c', rbd!.configuration, 'rm', `${harness.cephPool}/${name}`, '--no-progress']);
  });

  it('of a move to the trash before its name is off the list, is removed with it and after it', async () => {
    const image = await bench.volume('gone');
    const clone = await bench.make({ kind: 'copy', source: image, thick: false });
    const name = imageName(image);
    const [, listed] = (
      await admin().call(soon(), 'keys', harness.cephPool, 'rbd_directory', `name_${name}`, '', 1)
    )[0]!;
    await harness.backend.removeImage(image, bench.nextFence(), soon());
    expect(await trash()).toHaveLength(1);
    await admin().call(soon(), 'changeKeys', harness.cephPool, 'rbd_directory', [], { [`name_${name}`]: listed }, []);
    await enteredBefore(image.id, 2 * HOUR_MS);
    await audit();
    expect(await names()).not.toContain(name);
    expect(await trash(), 'its clone needs it').toHaveLength(1);
    expect(await bench.text(clone, 4)).toBe('gone');
    await harness.backend.removeImage(clone, bench.nextFence(), soon());
    expect(await trash()).toEqual([]);
  });

  it('of a removal from the trash before its entry is gone, is removed by the audit, and nothing of others', async () => {
    const image = await bench.volume('gone');
    const foreign = `theirs-${randomUUID()}`;
    await create(foreign);
    const [ours, theirs] = [await idOf(imageName(image)), await idOf(foreign)];
    await admin().call(soon(), 'trash', harness.cephPool, foreign);
    hookFailpoints(name => (name === 'rbd.trashed' ? Promise.reject(new Error('ended')) : undefined));
    await expect(harness.backend.removeImage(image, bench.nextFence(), soon())).rejects.toThrow();
    hookFailpoints();
    for (const id of [ours, theirs]) await rados('rm', `rbd_header.${id}`);
    expect((await trash()).sort()).toEqual([ours, theirs].sort());
    await audit();
    expect(await trash()).toEqual([theirs]);
    await admin().call(soon(), 'reap', harness.cephPool, theirs);
  });

  it('a clone that cannot be opened for what is missing of its parent is there all the same, and keeps its name', async () => {
    const image = await bench.volume('parent');
    const clone = await bench.make({ kind: 'copy', source: image, thick: false });
    const header = `rbd_header.${await idOf(imageName(image))}`;
    const key = (await rados('listomapkeys', header)).stdout.split('\n').find(one => one.startsWith('snapshot_'))!;
    const value = join(folder, 'snapshot');
    await rados('getomapval', header, key, value);
    await rados('rmomapkey', header, key);
    try {
      await enteredBefore(clone.id, 2 * HOUR_MS);
      await expect(harness.backend.inspectImage(clone, soon())).rejects.toMatchObject({
        kind: 'failed_precondition',
        retry: 'later',
        field: UNOPENED,
      });
      expect(await audit()).toContainEqual(expect.objectContaining({ id: clone.id }));
      expect(await names()).toContain(imageName(clone));
    } finally {
      await rados('setomapval', header, key, '--input-file', value);
    }
    expect(await bench.text(clone, 6)).toBe('parent');
  });

  it("of a removal from the trash after its parent's snapshot is gone, is removed by the audit, with its data", async () => {
    const image = await bench.volume('parent');
    const clone = await bench.make({ kind: 'copy', source: image, thick: false });
    await admin().call(soon(), 'write', harness.cephPool, { name: imageName(clone) }, 0, Buffer.from('own'));
    const id = await idOf(imageName(clone));
    const ofClone = async () => (await rados('ls')).stdout.split('\n').filter(object => object.includes(id));
    hookFailpoints(name => (name === 'rbd.trashed' ? Promise.reject(new Error('ended')) : undefined));
    await expect(harness.backend.removeImage(clone, bench.nextFence(), soon())).rejects.toThrow();
    hookFailpoints();
    const header = `rbd_header.${await idOf(imageName(image))}`;
    const keys = (await rados('listomapkeys', header)).stdout
      .split('\n')
      .filter(key => /^snap(shot|_children)_/.test(key));
    for (const key of keys) await rados('rmomapkey', header, key);
    await expect(admin().call(soon(), 'look', harness.cephPool, { id })).rejects.toMatchObject({ code: 'ESHUT' });
    expect(await ofClone()).toContain(`rbd_data.${id}.${'0'.repeat(16)}`);
    expect(await audit()).toContainEqual(expect.objectContaining({ id: image.id }));
    expect(await trash()).toEqual([]);
    expect(await ofClone()).toEqual([]);
  });

  describe('of a seal before the map of its objects is written', () => {
    const half = async () => {
      const volume = await bench.volume('kept');
      const image = bench.image('snapshot');
      const stage = bench.stageRef(image);
      await harness.backend.stage(stage, { kind: 'copy', source: volume, thick: false }, soon());
      const commit = () => harness.backend.commit(stage, image, { readOnly: true }, soon());
      hookFailpoints(name => (name === 'rbd.sealed' ? Promise.reject(new Error('ended')) : undefined));
      await expect(commit()).rejects.toThrow();
      hookFailpoints();
      const { id, snapshots } = (await admin().call(soon(), 'look', harness.cephPool, { name: imageName(image) }))!;
      await rados('rm', `rbd_object_map.${id}.${snapshots[0]!.id.toString(16).padStart(16, '0')}`);
      await expect(bench.text(image, 4), 'listed, and it opens to nobody').rejects.toThrow();
      return { image, commit };
    };

    it('is taken for none: a repeat seals the snapshot anew', async () => {
      const { image, commit } = await half();
      await commit();
      expect(await bench.text(image, 4)).toBe('kept');
    });

    it('goes alone: what a successor has sealed outlives whoever stood still after a look, and ends then', async () => {
      const { image, commit } = await half();
      const { call } = CephProcess.prototype as unknown as { call(...args: unknown[]): Promise<unknown> };
      let isFirst = true;
      const spy = vi.spyOn(CephProcess.prototype as unknown as { call: typeof call }, 'call');
      spy.mockImplementation(async function (this: unknown, ...args) {
        if (!isFirst || args[1] !== 'removeSnapshot') return call.apply(this, args);
        isFirst = false;
        await commit();
        await call.apply(this, args).catch(() => {});
        throw new Error('ended');
      });
      await expect(commit()).rejects.toThrow();
      spy.mockRestore();
      expect(isFirst).toBe(false);
      expect(await bench.text(image, 4)).toBe('kept');
    });
  });

  describe('of a rename', () => {
    const content = { kind: 'empty', sizeBytes: BigInt(MIB), thick: false } as const;
    /** @param isListed under its new name already */
    const cutOff = async (isListed: boolean) => {
      const image = bench.image();
      const stage = bench.stageRef(image);
      await harness.backend.stage(stage, content, soon());
      const staged = (await names()).find(name => name.startsWith(`trivet-t-${image.id}`))!;
      await admin().call(soon(), 'write', harness.cephPool, { name: staged }, 0, Buffer.from('kept'));
      hookFailpoints(async name => {
        if (name !== 'rbd.name:checked') return;
        if (isListed) {
          await admin().call(soon(), 'rename', harness.cephPool, staged, imageName(image));
          await nameAlso(imageName(image), staged);
        } else await nameAlso(staged, imageName(image));
        throw new Error('ended');
      });
      const commit = () => harness.backend.commit(stage, image, { readOnly: false }, soon());
      await expect(commit()).rejects.toThrow();
      hookFailpoints();
      return { image, stage, staged, commit };
    };
    const isWhole = async (image: ImageRef, staged: string) => {
      expect(await bench.text(image, 4)).toBe('kept');
      expect(await names()).toContain(imageName(image));
      expect(await names()).not.toContain(staged);
      await expect(rados('stat', `rbd_id.${staged}`)).rejects.toThrow(/No such file/);
    };

    it.each([false, true])(
      'is ended by a repeat, which keeps the image (listed as the new one: %s)',
      async isListed => {
        const { image, staged, commit } = await cutOff(isListed);
        await commit();
        await isWhole(image, staged);
      },
    );

    it('is taken for the image by who begins anew, once it is listed so', async () => {
      const { image, stage, staged } = await cutOff(true);
      const again = { ...stage, operationId: randomUUID(), fence: bench.nextFence() };
      await harness.backend.stage(again, content, soon());
      await harness.backend.commit(again, image, { readOnly: false }, soon());
      await isWhole(image, staged);
    });

    it('keeps nobody from the name who begins anew, until it is', async () => {
      const { image, stage } = await cutOff(false);
      const again = { ...stage, operationId: randomUUID(), fence: bench.nextFence() };
      await harness.backend.stage(again, content, soon());
      await harness.backend.commit(again, image, { readOnly: false }, soon());
      expect(await bench.text(image, 4)).toBe('\0\0\0\0');
    });
  });
});
