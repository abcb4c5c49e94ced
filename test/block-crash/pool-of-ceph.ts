import { randomUUID } from 'node:crypto';
import type { ImageFacts } from '#backends/linux/librbd/look';
import { imageName, isCut, type ParsedName, parseName, pathIn, SEALED } from '#backends/rbd/rbd-names';
import { placeOf, type TestCluster } from '#test/block-backend/rbd-harness';
import type { HeldImage, ImageKind, PoolImages } from '#test/block-crash/pool-images';

const MIB = 1024 ** 2;
const PORTION = 4 * MIB;
const BALLAST = 'ballast';
const THEIRS = Buffer.from('theirs');
const soon = () => AbortSignal.timeout(60_000);

interface Held extends ImageFacts {
  name: string;
  parsed: ParsedName;
}

/** The images of one pool of Ceph, as its administrator has them, and what somebody else keeps in there. */
export class PoolOfCeph implements PoolImages {
  /** By name; the last one is in the trash. */
  private ballast = 0;
  private foreign: { name: string; id: string }[] = [];

  constructor(
    private readonly cluster: TestCluster,
    readonly cephPool: string,
  ) {}

  path(kind: ImageKind, id: string, folder = ''): string {
    return pathIn(this.cephPool, imageName({ pool: '', kind, id, folder }), kind);
  }

  async write(volumeId: string, offset: number, bytes: Buffer): Promise<void> {
    await this.admin.call(soon(), 'write', this.cephPool, placeOf(this.path('volume', volumeId)).at, offset, bytes);
  }

  async bytes(kind: ImageKind, id: string, folder = ''): Promise<Buffer> {
    const { at } = placeOf(this.path(kind, id, folder));
    const found = await this.admin.call(soon(), 'look', this.cephPool, at);
    if (!found) throw new Error(`${kind} ${id} is missing: ${await this.traces(this.path(kind, id, folder), id)}`);
    return Buffer.from(await this.admin.call(soon(), 'read', this.cephPool, at, 0, found.size));
  }

  /** What the cluster has of an image that is not seen, each asked for by itself. */
  private async traces(path: string, id: string): Promise<string> {
    const { at } = placeOf(path);
    const name = 'name' in at ? at.name : '';
    const found = await Promise.allSettled([
      this.admin.call(soon(), 'idOf', this.cephPool, name),
      this.admin.call(soon(), 'listedId', this.cephPool, name),
      this.admin.call(soon(), 'look', this.cephPool, at),
      this.admin.call(soon(), 'look', this.cephPool, { name }),
      this.admin.call(soon(), 'names', this.cephPool),
      this.admin.call(soon(), 'trashed', this.cephPool),
      this.admin.call(soon(), 'keys', this.cephPool, `trivet_records.${id.at(-1)}`, id, '', 100),
    ]);
    return JSON.stringify(found.map(one => (one.status === 'fulfilled' ? (one.value ?? null) : String(one.reason))));
  }

  /** Names like ours, and an image like ours in the trash: somebody else's, which stay as they are. */
  async seedForeign(): Promise<void> {
    const names = ['theirs', `trivet-v-${randomUUID()}`, `trivet-s-${randomUUID()}`, `trivet-v-${randomUUID()}+gone`];
    for (const name of names) {
      await this.admin.call(soon(), 'create', this.cephPool, name, MIB);
      await this.admin.call(soon(), 'write', this.cephPool, { name }, 0, THEIRS);
      await this.admin.call(soon(), 'snapshot', this.cephPool, { name }, 'theirs');
      this.foreign.push({ name, id: (await this.admin.call(soon(), 'look', this.cephPool, { name }))!.id });
    }
    const last = this.foreign.at(-1)!;
    await this.admin.call(soon(), 'trash', this.cephPool, last.name);
  }

  /** So much of it, with an image of somebody else's. */
  async fill(bytes: number): Promise<void> {
    if (this.ballast === 0) await this.admin.call(soon(), 'create', this.cephPool, BALLAST, 1_024 * MIB);
    const portion = Buffer.alloc(PORTION, 1);
    for (let at = this.ballast; at < bytes; at += PORTION)
      await this.admin.call(soon(), 'write', this.cephPool, { name: BALLAST }, at, portion.subarray(0, bytes - at));
    this.ballast = bytes;
  }

  async free(): Promise<void> {
    const { id } = (await this.admin.call(soon(), 'look', this.cephPool, { name: BALLAST }))!;
    await this.admin.call(soon(), 'trash', this.cephPool, BALLAST);
    await this.admin.call(soon(), 'reap', this.cephPool, id);
    this.ballast = 0;
  }

  async images(): Promise<HeldImage[]> {
    const held = await this.held();
    return held.flatMap(({ parsed: { kind, id, folder }, size, snapshots }) => {
      if (kind === 'temporary') return [];
      const isSealed = snapshots.some(({ name }) => name === SEALED);
      const flaw = isSealed === (kind === 'snapshot') ? {} : { flaw: isSealed ? 'is sealed' : 'may be changed' };
      return [{ kind, path: folder === '' ? id : `${folder}/${id}`, size, ...flaw }];
    });
  }

  async leftovers(): Promise<string[]> {
    const held = await this.held();
    const trashed = await this.trashed();
    const needed = await this.needed(held);
    const live = new Set(held.map(({ parsed: { id } }) => id));
    const snapshots = [...held, ...trashed].flatMap(image =>
      image.snapshots
        // What a snapshot of ours came from stays as long as that; others only for what was cloned from them.
        .filter(({ name }) => !(isCut(name) && live.has(name.replace(/^trivet-cut-|\.[0-9a-f]+$/g, ''))))
        .filter(({ name }) => name !== SEALED && !needed.has(`${image.id}@${name}`))
        .map(({ name }) => `snapshot ${name} of image ${image.name}`),
    );
    const led = new Set(held.map(({ name }) => name));
    return [
      ...(await this.names()).filter(name => !led.has(name)).map(name => `name ${name}, which leads nowhere,`),
      ...held.filter(({ parsed: { kind } }) => kind === 'temporary').map(({ name }) => `temporary ${name}`),
      ...trashed.filter(({ id }) => !needed.has(id)).map(({ name }) => `image ${name} in the trash`),
      ...snapshots,
      ...(await this.strayRecords(held, trashed)),
      ...(await this.hurt()),
    ];
  }

  private get admin() {
    return this.cluster.admin;
  }

  private async names(): Promise<string[]> {
    const theirs = [BALLAST, ...this.foreign.map(({ name }) => name)];
    return (await this.admin.call(soon(), 'names', this.cephPool)).filter(name => !theirs.includes(name));
  }

  private async held(): Promise<Held[]> {
    const looked = await Promise.all(
      (await this.names()).map(async name => {
        const parsed = parseName(name);
        if (!parsed) throw new Error(`image ${name} is nobody's`);
        const facts = await this.admin.call(soon(), 'look', this.cephPool, { name });
        return facts && { ...facts, name, parsed };
      }),
    );
    return looked.filter(one => one !== undefined);
  }

  private async trashed(): Promise<(ImageFacts & { name: string })[]> {
    const theirs = this.foreign.map(({ id }) => id);
    const found: (ImageFacts & { name: string })[] = [];
    for (const { id, name } of await this.admin.call(soon(), 'trashed', this.cephPool)) {
      const facts = theirs.includes(id) ? undefined : await this.admin.call(soon(), 'look', this.cephPool, { id });
      if (facts) found.push({ ...facts, name });
    }
    return found;
  }

  /** Images, and snapshots as `<image>@<name>`, that something with a name of ours was cloned from. */
  private async needed(held: readonly Held[]): Promise<Set<string>> {
    const needed = new Set<string>();
    for (const { parsed, ...facts } of held)
      for (let at: ImageFacts | undefined = parsed.kind === 'temporary' ? undefined : facts; at?.parent; ) {
        const { imageId, snapshot }: { imageId: string; snapshot: string } = at.parent;
        needed.add(imageId).add(`${imageId}@${snapshot}`);
        at = await this.admin.call(soon(), 'look', this.cephPool, { id: imageId });
      }
    return needed;
  }

  /** Notes about what is not there, or not there any more; fences stay for a week. */
  private async strayRecords(held: readonly Held[], trashed: readonly ImageFacts[]): Promise<string[]> {
    const ids = new Map(held.map(({ parsed, id }) => [parsed.id, id]));
    const pages = await Promise.all(
      [...'0123456789abcdef'].map(shard =>
        this.admin.call(soon(), 'keys', this.cephPool, `trivet_records.${shard}`, '', '', 1_000),
      ),
    );
    return pages
      .flat()
      .filter(([key, value]) => {
        if (key.startsWith('trash/')) return !trashed.some(({ id }) => key === `trash/${id}`);
        const [imageId = '', what] = key.split('/');
        return what !== undefined && !(what === 'image' && ids.get(imageId) === value);
      })
      .map(([key, value]) => `record ${key} = ${value}`);
  }

  /** What is somebody else's, as far as it is not as it was. */
  private async hurt(): Promise<string[]> {
    const inTrash = new Set((await this.admin.call(soon(), 'trashed', this.cephPool)).map(({ id }) => id));
    const found: string[] = [];
    for (const [at, { name, id }] of this.foreign.entries()) {
      const facts = await this.admin.call(soon(), 'look', this.cephPool, { id });
      const data = facts && (await this.admin.call(soon(), 'read', this.cephPool, { id }, 0, THEIRS.length));
      const isWhole =
        data !== undefined &&
        THEIRS.equals(data) &&
        facts?.snapshots.map(one => one.name).join() === 'theirs' &&
        inTrash.has(id) === (at === this.foreign.length - 1);
      if (!isWhole) found.push(`damage of ${name}, which is somebody else's,`);
    }
    return found;
  }
}
