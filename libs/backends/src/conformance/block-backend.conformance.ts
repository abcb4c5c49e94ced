/**
 * What every BlockBackend must do, whatever holds the blocks: the sentences of the port, as tests. An adapter brings a
 * harness through which the suite reads and writes images by other means than the port.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { BlockBackend, ImageRef, ListedImage, PoolStatus, StageContent, StageRef } from '#backends/block-backend';
import type { ErrorKind } from '#platform/errors';
import { type LeaseSignal, unleased } from '#platform/lease-signal';

export interface BlockBackendHarness {
  backend: BlockBackend;
  /** Prepared, and this suite's alone. */
  pool: string;
  /** Registered, and down. */
  downPool: string;
  /** Registered, empty, not prepared yet. */
  freshPool: string;
  /** No pool of it can be used. */
  unusable: BlockBackend;
  /** Another tenant of the appliance, with the same pool registered. */
  otherTenant: BlockBackend;
  /** Writes at this distance are an extent each; a MiB if absent. */
  extentBytes?: number;
  write(image: ImageRef, offset: number, data: Buffer): Promise<void>;
  read(image: ImageRef, offset: number, length: number): Promise<Buffer>;
  /** Puts something of somebody else's beside our images; resolves to a look whether it is still as it was. */
  seedForeign(): Promise<() => Promise<boolean>>;
  close(): Promise<void>;
}

export const MIB = 1024 * 1024;
const soon = () => unleased(AbortSignal.timeout(60_000));

/** What both halves of the suite work with. */
export class BlockBackendBench {
  fence = 0n;
  readonly made: ImageRef[] = [];

  constructor(readonly harness: BlockBackendHarness) {}

  get backend(): BlockBackend {
    return this.harness.backend;
  }

  image(kind: ImageRef['kind'] = 'volume', folder = ''): ImageRef {
    const image = { pool: this.harness.pool, kind, id: randomUUID(), folder };
    this.made.push(image);
    return image;
  }

  /** The next claim of some operation: fences grow over all of them. */
  nextFence(): string {
    this.fence += 1n;
    return String(this.fence);
  }

  stageRef(image: ImageRef, fence = this.nextFence()): StageRef {
    return { pool: image.pool, imageId: image.id, operationId: randomUUID(), fence };
  }

  async make(
    content: StageContent,
    kind: ImageRef['kind'] = 'volume',
    options: { readOnly?: boolean; folder?: string } = {},
  ): Promise<ImageRef> {
    const image = this.image(kind, options.folder);
    const stage = this.stageRef(image);
    await this.backend.stage(stage, content, soon());
    await this.backend.commit(stage, image, { readOnly: options.readOnly ?? kind === 'snapshot' }, soon());
    return image;
  }

  /** A volume of `size` bytes that begins with `text`. */
  async volume(text: string, size = MIB): Promise<ImageRef> {
    const image = await this.make({ kind: 'empty', sizeBytes: BigInt(size), thick: false });
    await this.harness.write(image, 0, Buffer.from(text));
    return image;
  }

  async text(image: ImageRef, length: number): Promise<string> {
    return (await this.harness.read(image, 0, length)).toString();
  }

  async listed(): Promise<ListedImage[]> {
    const found: ListedImage[] = [];
    for await (const one of this.backend.listImages(this.harness.pool, soon())) found.push(one);
    return found;
  }

  async temporaries(): Promise<string[]> {
    return (await this.listed()).filter(({ kind }) => kind === 'temporary').map(({ id }) => id);
  }

  async clean(): Promise<void> {
    for (const image of [...this.made]) {
      await this.backend.discardStages(image, this.nextFence(), soon());
      await this.backend.removeImage(image, this.nextFence(), soon());
      this.made.shift();
    }
  }
}

export const failsWith = (promise: Promise<unknown>, kind: ErrorKind, message: RegExp = /./) =>
  expect(promise).rejects.toMatchObject({ name: 'StorageError', kind, message: expect.stringMatching(message) });

type Call = [
  name: string,
  call: (backend: BlockBackend, image: ImageRef, fence: string, signal: LeaseSignal) => Promise<unknown>,
];

/** Every method that reaches a pool; each stage is for `image`. */
export const CALLS: Call[] = [
  ['inspectImage', (backend, image, _, signal) => backend.inspectImage(image, signal)],
  ['predictCut', (backend, image, _, signal) => backend.predictCut(image, 10, signal)],
  ...fencedCalls(),
  [
    'listImages',
    async (backend, { pool }, _, signal) => {
      for await (const _image of backend.listImages(pool, signal));
    },
  ],
];

/** Those that carry a fence. */
function fencedCalls(): Call[] {
  const ref = (image: ImageRef, fence: string): StageRef => ({
    pool: image.pool,
    imageId: image.id,
    operationId: randomUUID(),
    fence,
  });
  const empty: StageContent = { kind: 'empty', sizeBytes: 512n, thick: false };
  return [
    ['stage', (backend, image, fence, signal) => backend.stage(ref(image, fence), empty, signal)],
    [
      'stageTogether',
      (backend, image, fence, signal) =>
        backend.stageTogether([{ stage: ref(image, fence), source: image }], { pids: [], deadlineMs: 1_000 }, signal),
    ],
    [
      'commit',
      (backend, image, fence, signal) => backend.commit(ref(image, fence), image, { readOnly: false }, signal),
    ],
    ['discardStages', (backend, image, fence, signal) => backend.discardStages(image, fence, signal)],
    [
      'growImage',
      (backend, image, fence, signal) => backend.growImage(image, { sizeBytes: 8_192n, thick: false }, fence, signal),
    ],
    ['removeImage', (backend, image, fence, signal) => backend.removeImage(image, fence, signal)],
  ];
}

export function describeBlockBackend(name: string, setup: () => Promise<BlockBackendHarness>): void {
  describe(`block backend: ${name}`, () => {
    let harness: BlockBackendHarness;
    let bench: BlockBackendBench;
    let backend: BlockBackend;

    beforeAll(async () => {
      harness = await setup();
      bench = new BlockBackendBench(harness);
      backend = harness.backend;
    });
    afterEach(() => bench.clean());
    afterAll(() => harness?.close());

    const statusOf = async (of: BlockBackend, pool: string): Promise<PoolStatus | undefined> =>
      (await of.inspectPools(soon())).find(status => status.name === pool);

    describe('pools', () => {
      it('are usable, or say why not', async () => {
        await backend.health(soon());
        expect(await statusOf(backend, harness.pool)).toMatchObject({
          state: 'up',
          uuid: expect.stringMatching(/^[0-9a-f-]{36}$/),
          clone: expect.stringMatching(/^(reflink|copy)$/),
        });
        const { totalBytes, usedBytes } = (await statusOf(backend, harness.pool))!;
        expect(totalBytes).toBeGreaterThan(usedBytes);
        expect(await statusOf(backend, harness.downPool)).toMatchObject({
          state: 'down',
          reason: expect.stringContaining(harness.downPool),
        });
        await failsWith(harness.unusable.health(soon()), 'unavailable');
      });

      it.each(CALLS)('that are down make %s unavailable, and never look empty', async (_, call) => {
        const image = { ...bench.image(), pool: harness.downPool };
        bench.made.pop();
        await failsWith(call(backend, image, bench.nextFence(), soon()), 'unavailable', /down/);
      });

      it('are looked at before anybody has prepared them, and stay as they are', async () => {
        const look = (of: BlockBackend, pool: string) => of.surveyPool(pool, soon());
        expect(await look(backend, harness.freshPool)).toMatchObject({ ok: true });
        expect(await statusOf(backend, harness.freshPool)).toMatchObject({ state: 'down' });
        expect(await look(backend, harness.pool)).toMatchObject({
          ok: true,
          detail: expect.stringContaining('already'),
        });
        expect(await look(harness.otherTenant, harness.pool)).toMatchObject({
          ok: false,
          detail: expect.stringContaining('another appliance or tenant'),
        });
        expect(await look(backend, harness.downPool)).toMatchObject({ ok: false });
      });

      it('are prepared once, whoever asks how often', async () => {
        const answers = await Promise.all([1, 2, 3].map(() => backend.preparePool(harness.freshPool, soon())));
        expect(new Set(answers.map(answer => answer.uuid)).size).toBe(1);
        expect(answers[0]).toMatchObject({ name: harness.freshPool, state: 'up' });
        expect(await backend.preparePool(harness.freshPool, soon())).toMatchObject({ uuid: answers[0]!.uuid });
      });

      it('belong to one tenant', async () => {
        const image = await bench.volume('mine');
        expect(await statusOf(harness.otherTenant, harness.pool)).toMatchObject({ state: 'down' });
        await failsWith(harness.otherTenant.inspectImage(image, soon()), 'unavailable');
        await failsWith(harness.otherTenant.removeImage(image, bench.nextFence(), soon()), 'unavailable');
        expect(await bench.text(image, 4)).toBe('mine');
      });

      it('that are not registered are refused', () =>
        failsWith(backend.inspectImage({ ...bench.image(), pool: 'nowhere' }, soon()), 'failed_precondition'));
    });

    describe('every call', () => {
      it.each(CALLS)('%s ends with timeout when the signal has fired, and does nothing', async (_, call) => {
        const image = await bench.volume('kept');
        await failsWith(call(backend, image, bench.nextFence(), unleased(AbortSignal.abort())), 'timeout');
        expect(await backend.inspectImage(image, soon())).toMatchObject({ state: 'present', sizeBytes: BigInt(MIB) });
        expect(await bench.temporaries()).toEqual([]);
      });

      it.each(fencedCalls())('%s with an overtaken fence is aborted and does nothing', async (_, call) => {
        const image = await bench.volume('kept');
        const stale = bench.nextFence();
        await backend.discardStages(image, bench.nextFence(), soon());
        await failsWith(call(backend, image, stale, soon()), 'aborted');
        expect(await backend.inspectImage(image, soon())).toMatchObject({ state: 'present', sizeBytes: BigInt(MIB) });
        expect(await bench.temporaries()).toEqual([]);
      });

      it('leaves alone what somebody else put there', async () => {
        const isUntouched = await harness.seedForeign();
        const before = (await bench.listed()).length;
        const image = await bench.make({ kind: 'empty', sizeBytes: 512n, thick: false }, 'volume', { folder: 'a/b' });
        await backend.removeImage(image, bench.nextFence(), soon());
        expect(await bench.listed()).toHaveLength(before);
        expect(await isUntouched()).toBe(true);
      });
    });

    describe('volumes', () => {
      it.each([512, 4_096, MIB + 512, 3 * MIB - 512, 10 * 1024 * MIB, 1024 * 1024 * MIB + 512])(
        'have exactly %i bytes, which take no room while they are thin',
        async size => {
          const image = await bench.make({ kind: 'empty', sizeBytes: BigInt(size), thick: false });
          const found = await backend.inspectImage(image, soon());
          expect(found).toMatchObject({ state: 'present', sizeBytes: BigInt(size), readOnly: false });
          expect(found.state === 'present' && found.allocatedBytes).toBeLessThan(64n * 1024n);
          const end = await harness.read(image, size - 512, 512);
          expect(end.equals(Buffer.alloc(512))).toBe(true);
        },
      );

      it('reserve every block when they are thick', async () => {
        const image = await bench.make({ kind: 'empty', sizeBytes: BigInt(8 * MIB + 512), thick: true });
        const found = await backend.inspectImage(image, soon());
        expect(found).toMatchObject({ sizeBytes: BigInt(8 * MIB + 512) });
        expect(found.state === 'present' && found.allocatedBytes).toBeGreaterThanOrEqual(BigInt(8 * MIB + 512));
        expect((await harness.read(image, 0, 4_096)).equals(Buffer.alloc(4_096))).toBe(true);
      });

      it('are absent until they are committed, and again after their removal', async () => {
        const image = bench.image();
        const stage = bench.stageRef(image);
        expect(await backend.inspectImage(image, soon())).toEqual({ state: 'absent' });
        await backend.stage(stage, { kind: 'empty', sizeBytes: 512n, thick: false }, soon());
        expect(await backend.inspectImage(image, soon())).toEqual({ state: 'absent' });
        expect(await bench.temporaries()).toEqual([image.id]);
        await backend.commit(stage, image, { readOnly: false }, soon());
        expect(await backend.inspectImage(image, soon())).toMatchObject({ state: 'present' });
        expect(await bench.temporaries()).toEqual([]);
        await backend.removeImage(image, bench.nextFence(), soon());
        await backend.removeImage(image, bench.nextFence(), soon());
        expect(await backend.inspectImage(image, soon())).toEqual({ state: 'absent' });
      });

      it('grow to exactly so many bytes, keep their content, and never shrink', async () => {
        const image = await bench.volume('content');
        const grow = (size: number) =>
          backend.growImage(image, { sizeBytes: BigInt(size), thick: false }, bench.nextFence(), soon());
        await grow(2 * MIB + 512);
        await grow(2 * MIB + 512);
        expect(await backend.inspectImage(image, soon())).toMatchObject({ sizeBytes: BigInt(2 * MIB + 512) });
        await failsWith(grow(2 * MIB), 'failed_precondition', /smaller/);
        expect(await backend.inspectImage(image, soon())).toMatchObject({ sizeBytes: BigInt(2 * MIB + 512) });
        expect(await bench.text(image, 7)).toBe('content');
        expect((await harness.read(image, 2 * MIB, 512)).equals(Buffer.alloc(512))).toBe(true);
      });

      it('allocate what they grow by when they are thick', async () => {
        const image = await bench.volume('thin');
        await backend.growImage(image, { sizeBytes: BigInt(5 * MIB), thick: true }, bench.nextFence(), soon());
        const found = await backend.inspectImage(image, soon());
        expect(found.state === 'present' && found.allocatedBytes).toBeGreaterThanOrEqual(BigInt(4 * MIB));
      });

      it('that are missing are not made anew by any call', async () => {
        const gone = bench.image();
        const copy = bench.image();
        const stage = bench.stageRef(copy);
        const growth = { sizeBytes: 512n, thick: false };
        await failsWith(backend.growImage(gone, growth, bench.nextFence(), soon()), 'failed_precondition', /missing/);
        await failsWith(backend.predictCut(gone, 10, soon()), 'failed_precondition', /missing/);
        const content = { kind: 'copy', source: gone, thick: false } as const;
        await failsWith(backend.stage(stage, content, soon()), 'failed_precondition', /missing/);
        await failsWith(
          backend.stageTogether([{ stage, source: gone }], { pids: [], deadlineMs: 1_000 }, soon()),
          'failed_precondition',
          /missing/,
        );
        await failsWith(backend.commit(stage, copy, { readOnly: false }, soon()), 'failed_precondition', /staged/);
        for (const image of [gone, copy])
          expect(await backend.inspectImage(image, soon())).toEqual({ state: 'absent' });
        expect(await bench.temporaries()).toEqual([]);
      });

      it('are found in their folder, where the path leads', async () => {
        const image = await bench.volume('found');
        const inFolder = await bench.make({ kind: 'empty', sizeBytes: 512n, thick: false }, 'volume', {
          folder: 'team/db-1',
        });
        const listed = await bench.listed();
        expect(listed.find(({ id }) => id === image.id)).toMatchObject({
          kind: 'volume',
          folder: '',
          sizeBytes: BigInt(MIB),
          path: backend.pathOf(image),
        });
        expect(listed.find(({ id }) => id === inFolder.id)).toMatchObject({ kind: 'volume', folder: 'team/db-1' });
        expect(Date.now() - listed[0]!.modifiedAt.getTime()).toBeLessThan(600_000);
        expect(backend.pathOf(image)).toContain(image.id);
      });
    });
  });
}
