import { BLOCK, type ChangesHouse, collect, type Taken } from '#test/changes/changes-house';
import { armFailpoints, disarmFailpoints } from '#test/failpoints/failpoints';
import { randomOf } from '#test/support/random';

const CRASHES = [
  'changes.index:claimed',
  'changes.index:begin:point',
  'changes.index:changed:answered',
  'changes.index:list:before',
  'changes.index:end:before',
  'changes.merge:merge:point',
  'changes.merge:end:before',
];
const DAYS_AGO = "UPDATE trivet.snapshot SET updated_at = now() - interval '31 days' WHERE id = $1";

/** A volume and what may happen to it; after each few steps the index must agree with the data of all its snapshots. */
export class History {
  /** In the order of their cuts; `deleted` ones can still be bases, `reaped` ones are gone. */
  private taken: (Taken & { deleted: boolean })[] = [];
  private bytes: number;
  private serial = 0;
  readonly told: string[] = [];

  private constructor(
    private readonly house: ChangesHouse,
    private readonly random: (below: number) => number,
    private volumeId: string,
    private readonly name: string,
    /** What is written is a multiple of it, mostly. */
    private readonly unit: number,
  ) {
    this.bytes = UNITS * unit;
  }

  static async begin(house: ChangesHouse, seed: number, unit = BLOCK): Promise<History> {
    const name = `history-${seed}`;
    return new History(house, randomOf(seed), await house.volume(name, UNITS * unit), name, unit);
  }

  async run(steps: number): Promise<void> {
    for (let n = 0; n < steps; n++) {
      await this.step();
      if (n % 4 === 3) await this.check();
    }
    await this.house.index();
    await this.check('index');
  }

  private async step(): Promise<void> {
    const { house, random } = this;
    switch (random(12)) {
      case 0:
        return this.remove();
      case 1:
        return this.expand();
      case 2:
        return this.cloned();
      case 3:
      case 4:
        return this.crashed();
      case 5:
        if (house.disk.flatten && random(2) === 0) return this.flatten(house.disk.flatten);
        this.told.push('retain');
        return house.retain(30 * 86_400_000);
      default:
        await this.write();
        return this.snapshot();
    }
  }

  private async write(): Promise<void> {
    const { house, random, volumeId, unit } = this;
    const blocks = this.bytes / unit;
    for (let n = random(6); n >= 0; n--) {
      const length = 1 + random(Math.min(9, blocks));
      const at = random(blocks - length + 1);
      this.told.push(`write ${at}+${length}`);
      switch (random(5)) {
        case 0:
          await house.punch(volumeId, at * unit, length * unit);
          break;
        case 1:
          await house.rewrite(volumeId, at * unit, length * unit);
          break;
        case 2:
          await house.write(volumeId, at * unit + 100, Buffer.alloc(300, 1 + random(255)));
          break;
        default:
          await house.write(volumeId, at * unit, Buffer.alloc(length * unit, 1 + random(255)));
      }
    }
  }

  private async snapshot(): Promise<void> {
    const name = `${this.name}-${this.serial++}`;
    this.told.push(`snapshot ${name}`);
    this.taken.push({ ...(await this.house.snapshot(this.volumeId, name)), deleted: false });
  }

  private async remove(): Promise<void> {
    const { house, random } = this;
    const live = this.taken.filter(({ deleted }) => !deleted);
    const victim = live[random(live.length)];
    if (!victim) return;
    await house.delete(victim.id);
    victim.deleted = true;
    const forGood = random(3) === 0;
    this.told.push(`delete ${victim.name}${forGood ? ' for good' : ''}`);
    if (random(2) === 0) await house.release();
    if (!forGood) return;
    await house.index();
    await house.release();
    await house.query(DAYS_AGO, [victim.id]);
    await house.retain(30 * 86_400_000);
    this.taken = this.taken.filter(one => one !== victim);
  }

  private async expand(): Promise<void> {
    if (this.bytes >= 4 * UNITS * this.unit) return;
    this.bytes += this.unit * (1 + this.random(8));
    this.told.push(`expand to ${this.bytes}`);
    await this.house.expand(this.volumeId, this.bytes);
  }

  /** Goes on with a clone of a snapshot, whose chain begins anew. */
  private async cloned(): Promise<void> {
    const { house, random } = this;
    const live = this.taken.filter(({ deleted }) => !deleted);
    const source = live[random(live.length)];
    if (!source || random(3) !== 0) return;
    await this.check();
    this.told.push(`clone ${source.name}`);
    this.volumeId = await house.clone(`${this.name}-clone-${this.serial++}`, source.id);
    this.bytes = source.data.length;
    this.taken = [];
    if (!house.disk.flatten || random(2) === 0) return;
    await this.write();
    await this.snapshot();
    await this.flatten(house.disk.flatten);
  }

  private async flatten(work: (path: string) => Promise<void>): Promise<void> {
    this.told.push('flatten');
    await work(this.house.path('volume', this.volumeId));
  }

  private async crashed(): Promise<void> {
    const point = CRASHES[this.random(CRASHES.length)]!;
    this.told.push(`index, ended at ${point}`);
    armFailpoints(`${point}=error@1`);
    try {
      await this.house.index();
    } finally {
      disarmFailpoints();
    }
  }

  /** Every pair, and a few offsets. */
  private async check(source?: 'index'): Promise<void> {
    const { house, random } = this;
    const { taken } = this;
    for (let b = 0; b < taken.length; b++) {
      const target = taken[b]!;
      if (target.deleted) continue;
      await house.expectAllocated(target);
      await house.expectAllocated(target, random(target.data.length + 1));
      for (let a = 0; a < b; a++) {
        const base = taken[a]!;
        // What is neither built nor can be compared is not known yet.
        const answer = await house.expectDelta(base, target).catch(error => {
          if (source || error.kind !== 'unavailable') throw error;
        });
        if (!answer) continue;
        if (source && answer !== source) throw new Error(`${base.name} to ${target.name} is answered by ${answer}`);
        await this.concatenated(base, target);
      }
    }
  }

  /** What was read up to an offset, and the rest from there, are the whole. */
  private async concatenated(base: Taken, target: Taken): Promise<void> {
    const { house, random } = this;
    const whole = await collect(await house.delta({ id: base.id }, { id: target.id }));
    const kept = random(whole.length + 1);
    const from = kept === 0 ? 0 : whole[kept - 1]!.end;
    const rest = await collect(await house.delta({ id: base.id }, { id: target.id }, from), from);
    if (JSON.stringify([...whole.slice(0, kept), ...rest]) !== JSON.stringify(whole))
      throw new Error(`${base.name} to ${target.name}: from ${from} on it is another answer`);
  }
}

const UNITS = 128;
