import fc from 'fast-check';
import { expect } from 'vitest';
import { type BlockJobs, type Host, hostOf, must, persist, type Reply } from '#test/block-crash/block-jobs';
import { type PoolImages, pattern } from '#test/block-crash/pool-images';
import type { BlockModel } from '#test/block-model/block-model';
import type { TestAppliance } from '#test/support/appliance';

export interface Real {
  appliance: TestAppliance;
  jobs: BlockJobs;
  pool: PoolImages;
  /** Before all names of this run. */
  prefix: string;
  restore(volumeId: string): Promise<void>;
  /** For how long a call is repeated. */
  patienceMs: number;
}

export type Command = fc.AsyncCommand<BlockModel, Real>;

const UNIT = 4_096;
const SIZE = 16 * UNIT;

const final = async ({ patienceMs }: Real, call: () => Promise<Reply>): Promise<Reply> =>
  (await persist(call, patienceMs)).at(-1)!;
const hostNamed = ({ prefix }: Real, name: string): Host => hostOf(`${prefix}-${name}`);

/** The worker dies at any instant of the call, and another one takes its place. */
async function maybeKilled<T>(crash: number, { appliance }: Real, call: () => Promise<T>): Promise<T> {
  if (crash === 0) return call();
  const answer = call();
  // By its own progress and not by a clock: so many operations later the history goes on elsewhere.
  for (let turn = 1; turn < crash; turn++) await appliance.database.query('SELECT 1');
  await appliance.process('worker').stop('SIGKILL');
  await appliance.database.query(
    `UPDATE trivet.operation SET lease_until = now(), dispatched_at = now() - interval '1 minute' WHERE state = 'running'`,
  );
  await appliance.worker();
  return answer;
}

abstract class OfVolume implements Command {
  constructor(
    readonly name: string,
    /** 0: nobody dies. */
    readonly crash: number,
  ) {}
  check(model: Readonly<BlockModel>): boolean {
    return model.volumes.has(this.name);
  }
  abstract run(model: BlockModel, real: Real): Promise<void>;
  toString(): string {
    return `${this.constructor.name} ${this.name}${this.crash ? ` and kill the worker ${this.crash}` : ''}`;
  }
}

class Create extends OfVolume {
  override check(model: Readonly<BlockModel>): boolean {
    return !model.volumes.has(this.name);
  }
  async run(model: BlockModel, real: Real): Promise<void> {
    const name = `${real.prefix}-${this.name}`;
    const reply = await maybeKilled(this.crash, real, () => final(real, () => real.jobs.create(name, SIZE)));
    expect(reply.code, reply.message).toBe('200');
    model.create(this.name, reply.body.id, Buffer.alloc(SIZE));
  }
}

class Write extends OfVolume {
  constructor(
    name: string,
    readonly block: number,
    readonly mark: number,
  ) {
    super(name, 0);
  }
  async run(model: BlockModel, { pool }: Real): Promise<void> {
    const { id, bytes } = model.volumes.get(this.name)!;
    const offset = (this.block * UNIT) % bytes.length;
    const data = pattern(`mark ${this.mark}`, UNIT);
    await pool.write(id, offset, data);
    model.write(this.name, offset, data);
  }
  override toString = () => `write ${this.mark} to block ${this.block} of ${this.name}`;
}

class Snapshot extends OfVolume {
  async run(model: BlockModel, real: Real): Promise<void> {
    const volume = model.volumes.get(this.name)!;
    const name = `s${volume.snapshots.size}-${this.crash}`;
    const known = volume.snapshots.get(name);
    const reply = await maybeKilled(this.crash, real, () => final(real, () => real.jobs.snapshot(volume.id, name)));
    expect(reply.code, reply.message).toBe('200');
    if (known) expect(reply.body.id, 'the same name is the same snapshot').toBe(known.id);
    else model.snapshot(this.name, name, reply.body.id);
  }
}

class CloneOfVolume extends OfVolume {
  constructor(
    name: string,
    readonly to: string,
    crash: number,
  ) {
    super(name, crash);
  }
  override check(model: Readonly<BlockModel>): boolean {
    return super.check(model) && !model.volumes.has(this.to);
  }
  async run(model: BlockModel, real: Real): Promise<void> {
    const { id, bytes } = model.volumes.get(this.name)!;
    const name = `${real.prefix}-${this.to}`;
    const call = () => final(real, () => real.jobs.cloneOfVolume(name, id, bytes.length));
    const reply = await maybeKilled(this.crash, real, call);
    expect(reply.code, reply.message).toBe('200');
    model.create(this.to, reply.body.id, Buffer.from(bytes));
  }
  override toString = () => `clone ${this.name} to ${this.to} ${this.crash}`;
}

class CloneOfSnapshot extends CloneOfVolume {
  override check(model: Readonly<BlockModel>): boolean {
    return super.check(model) && model.volumes.get(this.name)!.snapshots.size > 0;
  }
  override async run(model: BlockModel, real: Real): Promise<void> {
    const [snapshot] = [...model.volumes.get(this.name)!.snapshots.values()];
    const { id, bytes, clones } = snapshot!;
    const name = `${real.prefix}-${this.to}`;
    const larger = bytes.length + 2 * UNIT;
    const call = () => final(real, () => real.jobs.cloneOfSnapshot(name, id, larger));
    const reply = await maybeKilled(this.crash, real, call);
    expect(reply.code, reply.message).toBe('200');
    model.create(this.to, reply.body.id, Buffer.concat([bytes, Buffer.alloc(2 * UNIT)]));
    clones.add(this.to);
  }
  override toString = () => `clone a snapshot of ${this.name} to ${this.to} ${this.crash}`;
}

class DeleteSnapshot extends OfVolume {
  override check(model: Readonly<BlockModel>): boolean {
    return super.check(model) && model.volumes.get(this.name)!.snapshots.size > 0;
  }
  async run(model: BlockModel, real: Real): Promise<void> {
    const { snapshots } = model.volumes.get(this.name)!;
    const [name] = [...snapshots.keys()];
    const { id, clones } = snapshots.get(name!)!;
    const reply = await maybeKilled(this.crash, real, () => final(real, () => real.jobs.deleteSnapshot(id)));
    expect(reply.code, reply.message).toBe(clones.size > 0 ? '409' : 'GONE');
    if (clones.size === 0) snapshots.delete(name!);
  }
}

class Expand extends OfVolume {
  async run(model: BlockModel, real: Real): Promise<void> {
    const { id, bytes } = model.volumes.get(this.name)!;
    const size = bytes.length + 3 * UNIT;
    const reply = await maybeKilled(this.crash, real, () => final(real, () => real.jobs.expand(id, size)));
    expect(reply.code, reply.message).toBe('200');
    model.expand(this.name, size);
  }
}

class Delete extends OfVolume {
  async run(model: BlockModel, real: Real): Promise<void> {
    const { id, hosts } = model.volumes.get(this.name)!;
    const reply = await maybeKilled(this.crash, real, () => final(real, () => real.jobs.delete(id)));
    const refused = hosts.size > 0 ? '400' : '409';
    expect(reply.code, reply.message).toBe(model.mayDelete(this.name) ? 'GONE' : refused);
    if (model.mayDelete(this.name)) model.delete(this.name);
  }
}

/** Only while nobody has its name. */
class Restore extends OfVolume {
  override check(model: Readonly<BlockModel>): boolean {
    return model.bin.has(this.name) && !model.volumes.has(this.name);
  }
  async run(model: BlockModel, real: Real): Promise<void> {
    const { id } = model.bin.get(this.name)!;
    await real.restore(id);
    model.restore(this.name);
    const { body } = await must(() => real.jobs.get(`/volumes/${id}`));
    expect(body).toMatchObject({ id, name: `${real.prefix}-${this.name}`, published: false });
    const [row] = await real.appliance.database.query<{ base_snapshot_id: string | null }>(
      'SELECT base_snapshot_id FROM trivet.volume WHERE id = $1',
      [id],
    );
    for (const volume of model.volumes.values())
      for (const snapshot of volume.snapshots.values())
        if (snapshot.id === row!.base_snapshot_id) snapshot.clones.add(this.name);
  }
}

class Publish extends OfVolume {
  constructor(
    name: string,
    readonly host: string,
    crash: number,
  ) {
    super(name, crash);
  }
  async run(model: BlockModel, real: Real): Promise<void> {
    const { id, hosts } = model.volumes.get(this.name)!;
    const host = hostNamed(real, this.host);
    await must(() => real.jobs.host(host));
    const reply = await maybeKilled(this.crash, real, () => final(real, () => real.jobs.publish(id, host)));
    expect(reply.code, reply.message).toBe('200');
    hosts.add(this.host);
  }
  override toString = () => `publish ${this.name} to ${this.host} ${this.crash}`;
}

class Unpublish extends Publish {
  override async run(model: BlockModel, real: Real): Promise<void> {
    const { id, hosts } = model.volumes.get(this.name)!;
    const host = hostNamed(real, this.host);
    const reply = await maybeKilled(this.crash, real, () => final(real, () => real.jobs.unpublish(id, host)));
    expect(reply.code, reply.message).toBe('204');
    hosts.delete(this.host);
  }
  override toString = () => `unpublish ${this.name} from ${this.host} ${this.crash}`;
}

const name = fc.constantFrom('v1', 'v2', 'v3');
const host = fc.constantFrom('h1', 'h2');
/** Most calls are left alone; the others lose their worker sooner or later. */
const crash = fc.constantFrom(0, 0, 0, 0, 0, 0, 1, 3, 8, 20);
const one = fc.tuple(name, crash);
const two = fc.tuple(name, name, crash).filter(([a, b]) => a !== b);

export const commands: fc.Arbitrary<Iterable<Command>> = fc.commands(
  [
    one.map(given => new Create(...given)),
    one.map(given => new Create(...given)),
    fc.tuple(name, fc.nat(15), fc.nat(1_000)).map(given => new Write(...given)),
    fc.tuple(name, fc.nat(15), fc.nat(1_000)).map(given => new Write(...given)),
    fc.tuple(name, fc.nat(15), fc.nat(1_000)).map(given => new Write(...given)),
    one.map(given => new Snapshot(...given)),
    one.map(given => new Snapshot(...given)),
    two.map(given => new CloneOfSnapshot(...given)),
    two.map(given => new CloneOfVolume(...given)),
    one.map(given => new DeleteSnapshot(...given)),
    one.map(given => new Expand(...given)),
    one.map(given => new Delete(...given)),
    one.map(given => new Restore(...given)),
    fc.tuple(name, host, crash).map(given => new Publish(...given)),
    fc.tuple(name, host, crash).map(given => new Unpublish(...given)),
  ],
  { maxCommands: 25, size: 'max' },
);
