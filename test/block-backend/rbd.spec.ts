import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { BlockBackend, ImageRef } from '#backends/block-backend';
import { BlockBackendBench, failsWith, MIB } from '#backends/conformance/block-backend.conformance';
import { CephProcess } from '#backends/rbd/ceph-process';
import { RbdBackend } from '#backends/rbd/rbd-backend';
import { rbdConfig } from '#backends/rbd/rbd-config';
import { imageName } from '#backends/rbd/rbd-names';
import { unleased } from '#platform/lease-signal';
import { hookFailpoints } from '#platform/process/failpoint';
import { OWNER, poolOf, type RbdHarness, rbdHarness, rbdParts } from '#test/block-backend/rbd-harness';
import { type Watcher, watcherOf } from '#test/block-backend/watcher';

const rbd = rbdParts();
const soon = (ms = 60_000) => unleased(AbortSignal.timeout(ms));

describe.skipIf(!rbd)('rbd', () => {
  let harness: RbdHarness;
  let bench: BlockBackendBench;
  let backend: BlockBackend;

  beforeAll(async () => {
    harness = await rbdHarness(rbd!.configuration);
    bench = new BlockBackendBench(harness);
    backend = harness.backend;
  });
  afterEach(async () => {
    hookFailpoints();
    await bench.clean();
  });
  afterAll(() => harness?.close());

  const admin = () => harness.cluster.admin;
  const look = (image: ImageRef) => admin().call(soon(), 'look', harness.cephPool, { name: imageName(image) });
  const snapshotsOf = async (image: ImageRef) => (await look(image))!.snapshots.map(({ name }) => name);
  const trash = async () => (await admin().call(soon(), 'trashed', harness.cephPool)).map(({ name }) => name);
  const copyOf = (source: ImageRef, kind: ImageRef['kind']) => bench.make({ kind: 'copy', source, thick: false }, kind);
  const poolWith = (identity: { user: string; key: string }, monitors = harness.cluster.monitors): RbdBackend =>
    new RbdBackend(
      rbdConfig.parse({
        monitors,
        user: identity.user,
        pools: [poolOf('pool', harness.cephPool)],
        exporter: { kind: 'none' },
      }),
      identity.key,
      OWNER,
    );

  it('keeps fences at the cluster, for every host', async () => {
    const other = harness.open([poolOf('pool', harness.cephPool)]);
    const image = await bench.volume('kept');
    const [stale, newer] = [bench.nextFence(), bench.nextFence()];
    await backend.discardStages(image, newer, soon());
    await failsWith(other.removeImage(image, stale, soon()), 'aborted', /overtaken/);
    await other.growImage(image, { sizeBytes: BigInt(2 * MIB), thick: false }, newer, soon());
    expect(await bench.text(image, 4)).toBe('kept');
  });

  describe('an image of somebody else with a name of ours', () => {
    const seed = async (image: ImageRef) => {
      await admin().call(soon(), 'create', harness.cephPool, imageName(image), MIB);
      await admin().call(soon(), 'write', harness.cephPool, { name: imageName(image) }, 0, Buffer.from('theirs'));
    };
    const isTheirs = (image: ImageRef) =>
      admin()
        .call(soon(), 'read', harness.cephPool, { name: imageName(image) }, 0, 6)
        .then(data => expect(Buffer.from(data).toString()).toBe('theirs'));

    it('is neither adopted, nor deleted, nor replaced', async () => {
      const image = bench.image();
      bench.made.pop();
      await seed(image);
      await failsWith(backend.inspectImage(image, soon()), 'failed_precondition', /not Trivet's/);
      await failsWith(backend.removeImage(image, bench.nextFence(), soon()), 'failed_precondition', /not Trivet's/);
      const stage = bench.stageRef(image);
      await backend.stage(stage, { kind: 'empty', sizeBytes: 512n, thick: false }, soon());
      await failsWith(backend.commit(stage, image, { readOnly: false }, soon()), 'failed_precondition', /not Trivet's/);
      await failsWith(backend.removeImage(image, bench.nextFence(), soon()), 'failed_precondition', /not Trivet's/);
      await backend.discardStages(image, bench.nextFence(), soon());
      await isTheirs(image);
      expect((await bench.listed()).map(({ id }) => id)).not.toContain(image.id);
    });

    it('is not copied, and not touched for it', async () => {
      const image = bench.image();
      bench.made.pop();
      await seed(image);
      const reached: string[] = [];
      hookFailpoints(name => void reached.push(name));
      const stage = bench.stageRef(bench.image('snapshot'));
      const content = { kind: 'copy', source: image, thick: false } as const;
      await failsWith(backend.stage(stage, content, soon()), 'failed_precondition', /not Trivet's/);
      expect(reached).not.toContain('rbd.noted');
      await isTheirs(image);
    });

    it('is left alone when ours, whose name it took, is gone', async () => {
      const image = await bench.volume('ours');
      bench.made.pop();
      await admin().call(soon(), 'trash', harness.cephPool, imageName(image));
      await seed(image);
      await failsWith(backend.removeImage(image, bench.nextFence(), soon()), 'failed_precondition', /not Trivet's/);
      await isTheirs(image);
      // Nor is what somebody else put into the trash taken from it.
      for await (const _ of backend.listImages('pool', soon()));
      expect(await trash()).toEqual([imageName(image)]);
    });
  });

  it('deletes volumes before their snapshots and clones, and frees them with the last of those', async () => {
    const before = await trash();
    const volume = await bench.volume('first');
    const taken = await copyOf(volume, 'snapshot');
    const clone = await copyOf(taken, 'volume');
    await backend.removeImage(volume, bench.nextFence(), soon());
    expect(await backend.inspectImage(volume, soon())).toEqual({ state: 'absent' });
    await backend.removeImage(taken, bench.nextFence(), soon());
    expect(await trash()).toHaveLength(before.length + 2);
    expect(await bench.text(clone, 5)).toBe('first');
    await backend.removeImage(clone, bench.nextFence(), soon());
    expect(await trash()).toEqual(before);
  });

  it('keeps the snapshot that a snapshot came from as long as that, and no other', async () => {
    const volume = await bench.volume('x');
    const taken = await copyOf(volume, 'snapshot');
    const names = await snapshotsOf(volume);
    expect(names).toEqual([expect.stringContaining(taken.id)]);
    const clone = await copyOf(volume, 'volume');
    expect((await snapshotsOf(volume)).filter(name => name.includes(clone.id))).toEqual([]);
    await backend.removeImage(clone, bench.nextFence(), soon());
    await backend.removeImage(taken, bench.nextFence(), soon());
    expect(await snapshotsOf(volume)).toEqual([]);
  });

  describe('a snapshot that is sealed before it has its name', () => {
    const sealedFirst = async () => {
      const source = await bench.volume('first');
      const image = bench.image('snapshot');
      const stage = bench.stageRef(image);
      const before = await trash();
      await backend.stage(stage, { kind: 'copy', source, thick: false }, soon());
      const names = await admin().call(soon(), 'names', harness.cephPool);
      const name = names.find(one => one.startsWith(`trivet-t-${image.id}`))!;
      hookFailpoints(at => (at === 'rbd.renaming' ? Promise.reject(new Error('ended')) : undefined));
      await expect(backend.commit(stage, image, { readOnly: true }, soon())).rejects.toMatchObject({
        cause: new Error('ended'),
      });
      hookFailpoints();
      // And not: is being sealed. Who clears up would miss it.
      const { snapshots } = (await admin().call(soon(), 'look', harness.cephPool, { name }))!;
      expect(snapshots.map(one => one.name)).toEqual(['trivet-sealed']);
      return { source, image, stage, before };
    };

    it('gets it by a repeat', async () => {
      const { source, image, stage } = await sealedFirst();
      await harness.write(source, 0, Buffer.from('later'));
      await backend.commit(stage, image, { readOnly: true }, soon());
      expect(await bench.text(image, 5)).toBe('first');
      expect(await bench.temporaries()).toEqual([]);
      expect(await snapshotsOf(image)).toEqual(['trivet-sealed']);
    });

    it('is taken away by who undoes it', async () => {
      const { source, image, before } = await sealedFirst();
      await backend.discardStages(image, bench.nextFence(), soon());
      expect(await bench.temporaries()).toEqual([]);
      expect([await snapshotsOf(source), await trash()]).toEqual([[], before]);
    });
  });

  describe('a deletion', () => {
    it('takes a seal along that comes when the image is in the trash already', async () => {
      const before = await trash();
      const image = await bench.volume('late');
      const { id } = (await look(image))!;
      hookFailpoints(async name => {
        if (name !== 'rbd.trashed') return;
        await admin().call(soon(), 'snapshot', harness.cephPool, { id }, 'trivet-sealed');
      });
      await backend.removeImage(image, bench.nextFence(), soon());
      expect(await trash()).toEqual(before);
    });

    const noted = async (image: ImageRef) => {
      const keys = await admin().call(
        soon(),
        'keys',
        harness.cephPool,
        `trivet_records.${image.id.at(-1)}`,
        image.id,
        '',
        9,
      );
      return keys.map(([key]) => key.slice(image.id.length)).filter(key => key !== '');
    };

    it.each(['rbd.trashed', 'rbd.reaped', 'rbd.removed'])(
      'that ended at %s is brought to its end by a repeat',
      async at => {
        const before = await trash();
        const image = await bench.volume('half');
        hookFailpoints(name => (name === at ? Promise.reject(new Error('ended')) : undefined));
        await expect(backend.removeImage(image, bench.nextFence(), soon())).rejects.toThrow();
        hookFailpoints();
        expect(await noted(image)).toEqual(['/image']);
        await backend.removeImage(image, bench.nextFence(), soon());
        expect([await noted(image), await trash()]).toEqual([[], before]);
      },
    );

    it('is not disturbed by an audit that comes right before it moves the image to the trash', async () => {
      const before = await trash();
      const volume = await bench.volume('kept');
      const clone = await copyOf(volume, 'volume');
      hookFailpoints(async name => {
        if (name !== 'rbd.trashing') return;
        hookFailpoints();
        for await (const _ of backend.listImages('pool', soon()));
      });
      await backend.removeImage(volume, bench.nextFence(), soon());
      expect(await trash()).toHaveLength(before.length + 1);
      await backend.removeImage(clone, bench.nextFence(), soon());
      expect(await trash()).toEqual(before);
    });
  });

  it('gives a copy its own data before the chain of parents grows too long', async () => {
    let image = await bench.volume('deep');
    for (let n = 0; n < 10; n++) image = await copyOf(image, 'volume');
    expect(await bench.text(image, 4)).toBe('deep');
    let depth = 0;
    for (let at = await look(image); at?.parent; depth++)
      at = await admin().call(soon(), 'look', harness.cephPool, { id: at.parent.imageId });
    expect(depth).toBeLessThan(9);
  });

  describe('an attempt', () => {
    const interrupted = async (doing: (signal: AbortController) => void) => {
      const source = await bench.volume('source');
      const image = bench.image();
      const controller = new AbortController();
      hookFailpoints(name => {
        if (name === 'rbd.written') doing(controller);
        return undefined;
      });
      const signal = unleased(controller.signal);
      await expect(
        backend.stage(bench.stageRef(image), { kind: 'copy', source, thick: false }, signal),
      ).rejects.toThrow();
      hookFailpoints();
      return { source, image };
    };

    it('that fails takes away what it made', async () => {
      const { source } = await interrupted(() => {
        throw new Error('failed');
      });
      expect(await bench.temporaries()).toEqual([]);
      expect(await snapshotsOf(source)).toEqual([]);
    });

    it('that was cut off is taken away by who undoes it, with its snapshot', async () => {
      const { source, image } = await interrupted(controller => controller.abort());
      expect(await bench.temporaries()).toEqual([image.id]);
      expect(await snapshotsOf(source)).toHaveLength(1);
      await backend.discardStages(image, bench.nextFence(), soon());
      expect(await bench.temporaries()).toEqual([]);
      expect(await snapshotsOf(source)).toEqual([]);
    });
  });

  it('reserves around what is written, and never over it', async () => {
    const volume = await bench.volume('begin', 9 * MIB);
    await harness.write(volume, 5 * MIB + 512, Buffer.from('inside'));
    await admin().call(soon(), 'fill', harness.cephPool, imageName(volume), 0, 9 * MIB);
    expect(await bench.text(volume, 5)).toBe('begin');
    expect((await harness.read(volume, 5 * MIB + 512, 6)).toString()).toBe('inside');
    expect(await backend.inspectImage(volume, soon())).toMatchObject({ allocatedBytes: BigInt(9 * MIB) });
  });

  describe('an image that somebody has open', () => {
    let watcher: Watcher | undefined;
    afterEach(() => watcher?.end());

    it('is deleted when he is gone, and he is named until then', async () => {
      const image = await bench.volume('open');
      watcher = await watcherOf(harness.cluster, rbd!.configuration, harness.cephPool, imageName(image));
      const removal = backend.removeImage(image, bench.nextFence(), soon());
      await expect(removal).rejects.toMatchObject({
        kind: 'failed_precondition',
        retry: 'later',
        message: expect.stringMatching(/still open at 127\.0\.0\.1:/),
      });
      expect(await bench.text(image, 4)).toBe('open');
      await watcher.end();
      await backend.removeImage(image, bench.nextFence(), soon());
      expect(await backend.inspectImage(image, soon())).toEqual({ state: 'absent' });
    });
  });

  describe('without', () => {
    const fails = async (other: RbdBackend, kind: Parameters<typeof failsWith>[1], message: RegExp) => {
      try {
        await failsWith(other.inspectImage(bench.image(), soon()), kind, message);
        bench.made.pop();
        expect((await other.inspectPools(soon()))[0]).toMatchObject({
          state: 'down',
          reason: expect.stringMatching(message),
        });
      } finally {
        other.close();
      }
    };

    it('the right key it is not let in', async () => {
      const [{ user }, { key }] = [
        await harness.cluster.makeUser([harness.cephPool]),
        await harness.cluster.makeUser(['x']),
      ];
      await fails(poolWith({ user, key }), 'permission_denied', new RegExp(`client.${user} in`));
    });

    it('the caps of the pool it says which are missing', async () => {
      const other = await harness.cluster.makeUser(['another-pool']);
      await fails(poolWith(other), 'permission_denied', new RegExp(`profile rbd pool=${harness.cephPool}`));
    });

    it('the cap to write it says so before anything is asked of it', async () => {
      const osd = `profile rbd-read-only pool=${harness.cephPool}`;
      const reader = poolWith(await harness.cluster.makeUser([], ['mon', 'profile rbd', 'osd', osd]));
      try {
        expect(await reader.inspectPools(soon())).toMatchObject([
          { state: 'down', reason: expect.stringMatching(new RegExp(`may not.*profile rbd pool=${harness.cephPool}`)) },
        ]);
      } finally {
        reader.close();
      }
    });

    it('the caps of one of two pools it names those alone, and the other pool is up', async () => {
      const { cluster, cephPool } = harness;
      const second = await cluster.makePool();
      const { user, key } = await cluster.makeUser([cephPool]);
      const pools = [poolOf('pool', cephPool), poolOf('second', second)];
      const config = rbdConfig.parse({ monitors: cluster.monitors, user, pools, exporter: { kind: 'none' } });
      const other = new RbdBackend(config, key, OWNER);
      try {
        expect(await other.inspectPools(soon())).toMatchObject([
          { name: 'pool', state: 'up' },
          { name: 'second', state: 'down', reason: expect.stringContaining(`lacks osd 'profile rbd pool=${second}'`) },
        ]);
      } finally {
        other.close();
      }
    });

    it('monitors it gives up in bounded time', async () => {
      const user = await harness.cluster.makeUser([harness.cephPool]);
      await fails(poolWith(user, ['[v2:127.0.0.1:1/0]']), 'unavailable', /no monitor|cannot be reached/);
    });
  });

  it('keeps the key in no argument and no environment, and goes on when its process is killed', async () => {
    const { user, key } = await harness.cluster.makeUser([harness.cephPool]);
    const ceph = new CephProcess({ user, key, monitors: harness.cluster.monitors });
    try {
      await ceph.call(soon(), 'names', harness.cephPool);
      const pid = ceph.pid!;
      for (const file of ['cmdline', 'environ'])
        expect(readFileSync(`/proc/${pid}/${file}`, 'utf8')).not.toContain(key);
      const call = ceph.call(soon(), 'names', harness.cephPool);
      process.kill(pid, 'SIGKILL');
      await expect(call).rejects.toThrow(/ended/);
      expect(await ceph.call(soon(), 'names', harness.cephPool)).toEqual(expect.any(Array));
      expect(ceph.pid).not.toBe(pid);
    } finally {
      ceph.close();
    }
  });
});
