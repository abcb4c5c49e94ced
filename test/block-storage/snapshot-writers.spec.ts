import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { xfsFolder } from '#test/block-backend/file-harness';
import { BlockHouse } from '#test/block-storage/block-house';
import { CountingWriter, counterIn } from '#test/block-storage/counting-writer';
import { ImageContent } from '#test/block-storage/image-content';
import { until } from '#test/support/parts';

/** What a cut means for those who write, or are about to. */
let house: BlockHouse;
let content: ImageContent;
const writers: CountingWriter[] = [];
const open = async (under: string | undefined) => {
  house = await BlockHouse.create({ under });
  content = new ImageContent(house);
};
afterEach(async () => {
  vi.restoreAllMocks();
  for (const writer of writers.splice(0)) await writer.stop();
});

const published = async (name: string) => {
  const { id } = await house.volume(name, { sizeBytes: 1024n ** 2n });
  const { uuid } = await house.host(name);
  await publish(id, uuid);
  return { id, host: uuid };
};
const publish = (id: string, host: string) =>
  house.publications.publish(house.caller(), id, { host, accessProtocol: 'iscsi' });
const exporterOf = async (...ids: string[]) => {
  const writer = await CountingWriter.start(ids.map(id => content.path('volume', id)));
  writers.push(writer);
  return { writer, asked: vi.spyOn(house.store.exporter, 'writers').mockResolvedValue([writer.pid]) };
};
/** Holds the copying of an image until the test lets go. */
function heldStage() {
  const original = house.store.volumes.stage.bind(house.store.volumes);
  let release!: () => void;
  const released = new Promise<void>(resolve => {
    release = resolve;
  });
  let held = false;
  vi.spyOn(house.store.volumes, 'stage').mockImplementation(async (ref, content, signal) => {
    held ||= content.kind === 'copy';
    if (content.kind === 'copy') await released;
    return original(ref, content, signal);
  });
  return { release, begun: () => until('it is being made', () => held) };
}
const hasTarget = (volumeId: string) =>
  [...house.store.exporter.targets.values()].some(target => target.volumeId === volumeId);

describe('in a pool that copies', () => {
  beforeAll(() => open(undefined));
  afterAll(() => house?.close());

  it('the writers of a published volume stand still, and go on', async () => {
    const { id } = await published('still');
    const { writer } = await exporterOf(id);
    const together = vi.spyOn(house.store.volumes, 'stageTogether');
    const { id: snapshotId } = await house.snapshot(id, 's');
    expect(together.mock.calls[0]![1]).toEqual({ pids: [writer.pid], deadlineMs: 2_000 });
    expect(counterIn(content.path('snapshot', snapshotId))).toBeGreaterThan(0n);
    const then = counterIn(content.path('volume', id));
    await until('it writes', () => counterIn(content.path('volume', id)) > then);
  });

  it('a publication waits until the copy of an unpublished volume is complete', async () => {
    const { id } = await house.volume('waits');
    const { uuid } = await house.host('waits');
    const held = heldStage();
    const cutting = house.snapshot(id, 's');
    await held.begun();
    const publishing = publish(id, uuid);
    await until('it is accepted', async () => (await house.volumes.get(house.caller(), id)).published);
    // Whatever could run has run when one that came later is done.
    expect(hasTarget((await published('later')).id)).toBe(true);
    expect(hasTarget(id)).toBe(false);
    held.release();
    await cutting;
    await publishing;
    expect(hasTarget(id)).toBe(true);
  });
});

describe.skipIf(!xfsFolder())('in a pool that shares blocks', () => {
  beforeAll(() => open(xfsFolder()));
  afterAll(() => house?.close());

  it('nobody is stopped, and a publication does not wait', async () => {
    const { id } = await published('busy');
    const { asked } = await exporterOf(id);
    const { uuid } = await house.host('second');
    const together = vi.spyOn(house.store.volumes, 'stageTogether');
    const held = heldStage();
    const cutting = house.snapshot(id, 's');
    await held.begun();
    await publish(id, uuid);
    held.release();
    const { id: snapshotId } = await cutting;
    expect(counterIn(content.path('snapshot', snapshotId))).toBeGreaterThan(0n);
    expect(asked).not.toHaveBeenCalled();
    expect(together).not.toHaveBeenCalled();
  });

  it('a stall that is predicted above the limit is refused with the figures, unless it is forced', async () => {
    const { id } = await published('fragmented');
    vi.spyOn(house.store.volumes, 'predictCut').mockResolvedValue({ extents: 400_000, more: false, stallMs: 6_600 });
    await expect(house.snapshot(id, 's')).rejects.toMatchObject({
      kind: 'failed_precondition',
      message: expect.stringMatching(/400000 extents.*6600 ms.*5000 ms$/),
    });
    expect(
      await house.testDatabase.query("SELECT FROM trivet.snapshot WHERE volume_id = $1 AND state <> 'gone'", [id]),
    ).toEqual([]);
    expect(await house.snapshot(id, 's', { force: true })).toMatchObject({ ready: true });
    await expect(house.snapshot(id, 's2', { config: { force: true } })).rejects.toMatchObject({ field: 'force' });
  });

  it('what is too much to be counted is too much', async () => {
    const { id } = await house.volume('uncounted');
    vi.spyOn(house.store.volumes, 'predictCut').mockResolvedValue({ extents: 1_000_000, more: true, stallMs: 4_000 });
    await expect(house.snapshot(id, 's')).rejects.toMatchObject({
      message: expect.stringContaining('more than 1000000 extents'),
    });
  });
});
