import { AdminHouse } from '#test/admin/admin-house';
import type { BenchOptions, Figure } from '#test/bench/measure';
import { inPages, inTime, type Measure, measureAll } from '#test/bench/scale/figures';
import { type Filled, ScaleFill } from '#test/bench/scale/fill';
import { growth, isWithin } from '#test/bench/scale/limits';
import { OwnPostgres } from '#test/support/postgres-server';
import { StatementPlans } from '#test/support/statement-plans';

const SIZES = [1_000, 100_000, 1_000_000];
const QUICK_SIZES = [1_000, 20_000];
const RUNS = 15;

interface AtSize {
  filled: Filled;
  ms: Map<string, number>;
  pages: Map<string, number>;
}

/** What each thing costs with so many volumes: in milliseconds, and in pages of the database that it touches. */
export async function benchScale({ quick, volumes }: BenchOptions): Promise<Figure[]> {
  const sizes = (quick ? QUICK_SIZES : SIZES).filter(size => size <= (volumes ?? Number.POSITIVE_INFINITY));
  if (volumes !== undefined && !sizes.includes(volumes)) sizes.push(volumes);
  const server = await OwnPostgres.start();
  const plans = await StatementPlans.of(server.urls.superuserUrl);
  const house = await AdminHouse.create({
    block: 'fake',
    postgres: server.urls,
    env: { TRIVET_LOG_LEVEL: 'error', TRIVET_DATABASE_POOL: '10' },
  });
  let fill: ScaleFill | undefined;
  try {
    const say = (line: string) => void process.stderr.write(`scale: ${line}\n`);
    fill = await ScaleFill.begin(house.appliance.database.superuserUrl, say);
    const measured: AtSize[] = [];
    for (const size of sizes) {
      const filled = await fill.grow(size);
      const timed = inTime(quick ? 2 : RUNS);
      // V8 compiles what it runs for the first time.
      if (measured.length === 0) await measureAll(house, fill, timed);
      const told: Measure = async one => {
        const taken = await timed(one);
        say(`${size.toLocaleString('en')} volumes: ${one.name}, ${taken.toFixed(1)} ms`);
        return taken;
      };
      const ms = await measureAll(house, fill, told);
      const touched = inPages(plans);
      const pages = await measureAll(house, fill, async one => {
        const count = await touched(one);
        say(`${size.toLocaleString('en')} volumes: ${one.name}, ${count} pages`);
        return count;
      });
      say(`${size.toLocaleString('en')} volumes: measured`);
      measured.push({ filled, ms, pages });
    }
    return [...measured.map(sizeOf), ...figuresOf(measured)];
  } finally {
    await fill?.close();
    await house.close();
    await plans.close();
    await server.close();
  }
}

const sizeOf = ({ filled: { volumes, seconds, bytes } }: AtSize): Figure => ({
  name: `${volumes.toLocaleString('en')} volumes: on disk`,
  value: `${(bytes / 2 ** 20).toFixed(0)} MiB, ${(bytes / volumes / 1_024).toFixed(1)} KiB a volume, filled in ${seconds.toFixed(0)} s`,
  limit: '',
  baseline: '',
});

function figuresOf(measured: readonly AtSize[]): Figure[] {
  const [least] = measured;
  return [...least!.ms.keys()].map(name => {
    const cells = measured.map(({ filled, ms, pages }) => {
      const [time, touched] = [ms.get(name)!, pages.get(name)!];
      const against = filled === least!.filled ? '' : ` (${(time / least!.ms.get(name)!).toFixed(2)})`;
      return `${`${time.toFixed(1)} ms${against}`.padEnd(18)}${`${touched} p`.padEnd(9)}`;
    });
    const { limit, because } = growth(name);
    return {
      name: name.padEnd(48),
      value: cells.join(' '),
      limit: `${limit} times${because ? `: ${because}` : ''}`,
      baseline: '',
      ok: measured.every(({ pages }) => isWithin(name, pages.get(name)!, least!.pages.get(name)!)),
    };
  });
}
