import { acceptInBackground } from '#operations/accepting/accept-in-background';
import { Database } from '#platform/database/database';
import type { ErrorKind } from '#platform/errors';
import { beginRelease } from '#storage/block/snapshots/release-snapshot';
import { BlockJobs, type Host, hostOf, must } from '#test/block-crash/block-jobs';
import { type Target, targetsOf, withSession } from '#test/block-crash/block-targets';
import { difference, type PoolImages, pattern } from '#test/block-crash/pool-images';
import { poolOf } from '#test/block-crash/pool-of-appliance';
import type { FaultOrder } from '#test/fakes/object/fake-control';
import type { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

export const SIZE = 256 * 1024;

interface VolumeRow {
  id: string;
  state: string;
  size_bytes: string;
}

/** One run of one scenario: names of its own, so that many share an appliance. */
export class BlockStage {
  readonly jobs: BlockJobs;
  readonly pool: PoolImages;
  readonly host: Host;
  readonly otherHost: Host;
  /** What each image must hold, by id: looked at right after the scenario and once more at the end of all. */
  readonly contents = new Map<string, { kind: 'volume' | 'snapshot'; bytes: Buffer; folder?: string }>();
  volumeId = '';
  otherId = '';
  snapshotId = '';
  groupId = '';
  snapshotGroupId = '';
  identity: { tid: number; serial_number: string } | undefined;

  constructor(
    readonly appliance: TestAppliance,
    readonly name: string,
  ) {
    this.jobs = new BlockJobs(appliance);
    this.pool = poolOf(appliance);
    this.host = hostOf(`${name}-host`);
    this.otherHost = hostOf(`${name}-other`);
  }

  /** A volume of SIZE bytes with data at its begin and its end, and a hole between. */
  async volume(suffix = 'a', more: Record<string, unknown> = {}): Promise<string> {
    const { body } = await must(() => this.jobs.create(`${this.name}-${suffix}`, SIZE, more));
    const id = body.id as string;
    this.contents.set(id, { kind: 'volume', bytes: Buffer.alloc(SIZE) });
    await this.fill(id, 0, `${id} first`, 64 * 1024);
    await this.fill(id, SIZE - 4_096, `${id} last`, 4_096);
    return id;
  }

  /** Writes, and remembers it as the volume's content. */
  async fill(volumeId: string, offset: number, mark: string, length: number): Promise<void> {
    const bytes = pattern(mark, length);
    await this.pool.write(volumeId, offset, bytes);
    bytes.copy(this.contents.get(volumeId)!.bytes, offset);
  }

  /** Another generation of the whole volume. */
  rewrite(volumeId: string, mark: string): Promise<void> {
    return this.fill(volumeId, 0, mark, SIZE);
  }

  /** What an image made from this one now must hold, with zeros up to `size`. */
  copyOf(id: string, size = SIZE): Buffer {
    const copy = Buffer.alloc(size);
    this.contents.get(id)!.bytes.copy(copy);
    return copy;
  }

  async expectBytes(kind: 'volume' | 'snapshot', id: string, bytes: Buffer, folder = ''): Promise<void> {
    const wrong = difference(await this.pool.bytes(kind, id, folder), bytes);
    if (wrong) throw new Error(`${kind} ${id}: ${wrong}`);
    this.contents.set(id, { kind, bytes, folder });
  }

  /** A host sees that many bytes when it looks again. */
  async expectCapacity(bytes: number): Promise<void> {
    const { appliance, host, volumeId } = this;
    const { fakeBlock } = appliance;
    const found = fakeBlock
      ? Number(fakeBlock.targets().find(({ iqn }) => iqn.endsWith(volumeId))?.sizeBytes)
      : await withSession(appliance, host, volumeId, session => session.capacity());
    expectEqual(found, bytes, 'its capacity');
  }

  /** The host reads over the wire what the volume holds, and what it writes is in the volume. */
  async expectLogin(host: Host): Promise<void> {
    const { appliance, volumeId } = this;
    const wanted = this.contents.get(volumeId)!.bytes;
    if (appliance.fakeBlock) return;
    const found = await withSession(appliance, host, volumeId, session => session.read(0, wanted.length));
    const wrong = difference(found, wanted);
    if (wrong) throw new Error(`${host.name} reads of ${volumeId}: ${wrong}`);
  }

  /** What the background brings about. */
  async eventually(check: () => Promise<void>): Promise<void> {
    let last: unknown;
    const holds = async (): Promise<boolean> => {
      try {
        await check();
        return true;
      } catch (error) {
        last = error;
        return false;
      }
    };
    await until('it is as it must be', holds, 15_000).catch(() => {
      throw last;
    });
  }

  /** Images that hold something else than they must. */
  async wrongContents(): Promise<string[]> {
    const found: string[] = [];
    for (const [id, { kind, bytes, folder }] of this.contents) {
      const wrong = difference(await this.pool.bytes(kind, id, folder), bytes);
      if (wrong) found.push(`${kind} ${id} of ${this.name}: ${wrong}`);
    }
    return found;
  }

  /** Its content is nobody's business any more. */
  forget(...ids: string[]): void {
    for (const id of ids) this.contents.delete(id);
  }

  /** Of all lives of this name, the newest first. */
  rows(suffix = 'a'): Promise<VolumeRow[]> {
    return this.appliance.database.query<VolumeRow>(
      "SELECT * FROM trivet.volume WHERE name = $1 AND state <> 'gone' ORDER BY created_at DESC",
      [`${this.name}-${suffix}`],
    );
  }

  async publish(host: Host = this.host, volumeId = this.volumeId): Promise<void> {
    await must(() => this.jobs.host(host));
    await must(() => this.jobs.publish(volumeId, host));
  }

  async target(volumeId = this.volumeId): Promise<Target | undefined> {
    return (await targetsOf(this.appliance)).find(({ iqn }) => iqn.endsWith(volumeId));
  }

  fault(method: string, resource: string, mode: FaultOrder['mode'], error: ErrorKind): void {
    this.appliance.fakeBlock!.addFault({ method, resource, mode, error, message: `ordered by ${this.name}` });
  }

  /** Has the image of a deleted snapshot released, as the worker's background does, and waits for it. */
  async release(snapshotId: string): Promise<void> {
    const { database } = this.appliance;
    await database.query('DELETE FROM trivet.snapshot_pin WHERE snapshot_id = $1', [snapshotId]);
    const [row] = await database.query<{ tenant_id: string; backend_id: string }>(
      'SELECT tenant_id, backend_id FROM trivet.snapshot WHERE id = $1',
      [snapshotId],
    );
    const place = { tenantId: row!.tenant_id, backendId: row!.backend_id };
    const { appUrl } = database;
    const connected = await Database.connect({ appUrl, applicationName: 'trivet:test', poolSize: 1 });
    try {
      await acceptInBackground(connected, place, (tx, begin, operationId) =>
        beginRelease(tx, begin, { tenantId: place.tenantId, operationId }, snapshotId, { anchor: false }),
      );
    } finally {
      await connected.close();
    }
    await until('the image is released', async () => {
      const open = 'SELECT FROM trivet.operation WHERE resource_id = $1 AND finished_at IS NULL';
      return (await database.query(open, [snapshotId])).length === 0;
    });
  }

  /** Operations about anything of this stage that have not ended. */
  open(): Promise<unknown[]> {
    return this.appliance.database.query(
      'SELECT kind, state, resource_name, error FROM trivet.operation WHERE finished_at IS NULL AND resource_name LIKE $1',
      [`${this.name}-%`],
    );
  }
}

export function expectEqual(found: unknown, wanted: unknown, what = 'at the store'): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what} is ${a}, expected ${b}`);
}
