import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '#platform/database/database';
import { restoreFromBin } from '#storage/block/volumes/recycle-bin';
import { blockHistoryOf, blockViolations } from '#test/block-crash/block-history';
import { BlockJobs, hostOf, must } from '#test/block-crash/block-jobs';
import { targetsOf } from '#test/block-crash/block-targets';
import { lastingMismatches } from '#test/block-crash/block-truth';
import { difference } from '#test/block-crash/pool-images';
import { poolOf } from '#test/block-crash/pool-of-appliance';
import { BlockModel } from '#test/block-model/block-model';
import { commands, type Real } from '#test/block-model/commands';
import { TestAppliance } from '#test/support/appliance';
import type { BlockKind } from '#test/support/block-folders';

const PATIENCE_MS = 30_000;
/** After so long a cluster takes a client that was killed in the middle of a call for gone (osd_client_watch_timeout). */
const WATCH_MS = 30_000;
const SEED = Number(process.env.TRIVET_MODEL_SEED ?? Date.now() % 2 ** 31);

/** As the administrator's command does. */
const restoreBy =
  (database: Database, { database: owner }: TestAppliance) =>
  async (volumeId: string): Promise<void> => {
    const [row] = await owner.query<{ tenant_id: string }>('SELECT tenant_id FROM trivet.volume WHERE id = $1', [
      volumeId,
    ]);
    await restoreFromBin(database, row!.tenant_id, volumeId);
  };

const compare = async (model: BlockModel, { appliance, prefix, pool }: Real): Promise<void> => {
  await appliance.settled();
  expect(await lastingMismatches(appliance)).toEqual([]);
  const volumes = await appliance.database.query<{ name: string; state: string; id: string }>(
    "SELECT name, state, id FROM trivet.volume WHERE name LIKE $1 AND state <> 'gone' ORDER BY created_at",
    [`${prefix}-%`],
  );
  const text = (name: string, id: string): string => `${name} ${id}`;
  expect(
    volumes
      .filter(({ state }) => state === 'ready')
      .map(row => text(row.name, row.id))
      .sort(),
  ).toEqual([...model.volumes].map(([name, { id }]) => text(`${prefix}-${name}`, id)).sort());
  const wrong: string[] = [];
  for (const [name, { id, bytes }] of [...model.volumes, ...model.bin]) {
    const found = difference(await pool.bytes('volume', id), bytes);
    if (found) wrong.push(`${name}: ${found}`);
  }
  for (const [name, { snapshots }] of model.volumes)
    for (const [snapshot, { id, bytes }] of snapshots) {
      const found = difference(await pool.bytes('snapshot', id), bytes);
      if (found) wrong.push(`${snapshot} of ${name}: ${found}`);
    }
  expect(wrong).toEqual([]);
  const served = (await targetsOf(appliance)).map(({ iqn, initiators }) => `${iqn.replace(/^.*:/, '')} ${initiators}`);
  const wanted = [...model.volumes.values()]
    .filter(({ hosts }) => hosts.size > 0)
    .map(({ id, hosts }) => `${id} ${[...hosts].sort().map(host => `iqn.2026-11.example:${prefix}-${host}`)}`);
  expect(served.sort()).toEqual(wanted.sort());
};

/** For the next run: what is served, and what has a name. */
const cleanUp = async (model: BlockModel, { jobs, prefix }: Real): Promise<void> => {
  for (const { id, hosts } of model.volumes.values())
    for (const host of hosts) await must(() => jobs.unpublish(id, hostOf(`${prefix}-${host}`)));
  for (const { id } of model.volumes.values()) await must(() => jobs.delete(id, true));
};

/** Histories of calls, in which workers die, against a model that knows of no operations. */
export function describeBlockModel(house: BlockKind, runs: number): void {
  describe(`block volumes on ${house}`, () => {
    let appliance: TestAppliance;
    let database: Database;
    beforeAll(async () => {
      appliance = await TestAppliance.start({
        backend: 'fake',
        block: house,
        env: { TRIVET_LEASE_MS: '2000', TRIVET_RECONCILE_MS: '150' },
      });
      const { appUrl, engineUrl } = appliance.database;
      database = await Database.connect({ appUrl, engineUrl, applicationName: 'trivet:test', poolSize: 2 });
    });
    afterAll(async () => {
      await database?.close();
      await appliance?.close();
    });

    it(
      `keep every byte as if nothing ever failed (${runs} runs, seed ${SEED})`,
      async () => {
        let run = 0;
        const property = fc.asyncProperty(commands, async list => {
          const real: Real = {
            appliance,
            jobs: new BlockJobs(appliance),
            pool: poolOf(appliance),
            prefix: `run${run++}`,
            restore: restoreBy(database, appliance),
            patienceMs: house === 'rbd' ? PATIENCE_MS + WATCH_MS : PATIENCE_MS,
          };
          const model = new BlockModel();
          await fc.asyncModelRun(() => ({ model, real }), list);
          await compare(model, real);
          await cleanUp(model, real);
        });
        await fc.assert(property, { numRuns: runs, seed: SEED, endOnFailure: true });
        expect(blockViolations(await blockHistoryOf(appliance))).toEqual([]);
      },
      Math.max(90_000, runs * 30_000),
    );
  });
}
