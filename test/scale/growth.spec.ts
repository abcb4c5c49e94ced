import { afterAll, beforeAll, expect, it } from 'vitest';
import { AdminHouse } from '#test/admin/admin-house';
import { inPages, measureAll } from '#test/bench/scale/figures';
import { ScaleFill } from '#test/bench/scale/fill';
import { isWithin } from '#test/bench/scale/limits';
import { OwnPostgres } from '#test/support/postgres-server';
import { StatementPlans } from '#test/support/statement-plans';

const [SMALL, LARGE] = [1_000, 20_000];

let server: OwnPostgres;
let plans: StatementPlans;
let house: AdminHouse;
let fill: ScaleFill;
beforeAll(async () => {
  server = await OwnPostgres.start();
  plans = await StatementPlans.of(server.urls.superuserUrl);
  // What it looks at beside us, our own VACUUM leaves behind: dead entries, which are walked through.
  await plans.set('autovacuum', 'off');
  house = await AdminHouse.create({ block: 'fake', postgres: server.urls });
  fill = await ScaleFill.begin(house.appliance.database.superuserUrl, () => {});
}, 60_000);
afterAll(async () => {
  await fill?.close();
  await house?.close();
  await plans?.close();
  await server?.close();
}, 60_000);

it('with twenty times as many volumes nothing touches more pages than its indexes have levels more', async () => {
  await fill.grow(SMALL);
  const least = await measureAll(house, fill, inPages(plans));
  await fill.grow(LARGE);
  const most = await measureAll(house, fill, inPages(plans));
  const grown = [...most].filter(([name, pages]) => !isWithin(name, pages, least.get(name)!));
  expect(grown.map(([name, pages]) => `${name}: ${least.get(name)} pages, then ${pages}`)).toEqual([]);
}, 240_000);
