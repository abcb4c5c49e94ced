import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BlockStore } from '#backends/block-backend';
import type { DaemonRef } from '#backends/exporter';
import { ioBetween, LastLook, lookOf } from '#backends/tgt/io-counters';
import { parseCounters } from '#backends/tgt/tgt-stat';
import type { BlockDirectory } from '#storage/shared/backend-directory';
import { VolumeIoSampler } from '#storage/usage/volume-io-sampler';
import type { AdminHouse } from '#test/admin/admin-house';
import type { BenchOptions, Figure } from '#test/bench/measure';
import { cpuOf, groupsOf } from '#test/bench/processor-time';

const POOLS = 10;
const VOLUMES_OF_POOL = 1_000;
const MINUTE_MS = 60_000;
/** Of tgtd itself for a thousand units with a session each (ADR 68), which are not made here. */
const TGTD_MS = 1.6;

/**
 * What it costs a minute to know what hosts do with 10,000 published volumes, all of them busy: the text of tgtd taken apart, compared,
 * mapped and written, by us and by PostgreSQL.
 */
export async function counterFigures(house: AdminHouse, { quick }: BenchOptions): Promise<Figure[]> {
  const rounds = quick ? 3 : 20;
  await publish(house);
  const folder = mkdtempSync(join(tmpdir(), 'trivet-counters-'));
  let round = 0;
  const looks = new Map(
    Array.from({ length: POOLS }, (_, pool) => {
      mkdirSync(join(folder, `p${pool}`));
      return [`p${pool}`, new LastLook(join(folder, `p${pool}`))];
    }),
  );
  const exporter = {
    ioSince: async ({ pool }: DaemonRef) => {
      const last = looks.get(pool)!;
      const look = lookOf('run', round * MINUTE_MS, parseCounters(textOf(Number(pool.slice(1)), round)));
      const before = await last.read();
      await last.write(look);
      return ioBetween(before, look);
    },
  };
  const blocks = { open: async () => ({ exporter }) as unknown as BlockStore } as unknown as BlockDirectory;
  const sampler = new VolumeIoSampler(house.database, blocks, 400);
  const { signal } = new AbortController();
  try {
    const { PostgreSQL } = await groupsOf(house.appliance);
    const spent = (): number => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1_000 + cpuOf({ PostgreSQL: PostgreSQL! }).PostgreSQL!;
    };
    // The first look has nothing to compare with, and each text is made beforehand.
    for (let pool = 0; pool < POOLS; pool++) for (let n = 0; n <= rounds; n++) textOf(pool, n);
    await sampler.run(signal);
    const before = spent();
    for (round = 1; round <= rounds; round++) await sampler.run(signal);
    const ms = (spent() - before) / rounds + POOLS * TGTD_MS;
    const share = (ms / MINUTE_MS) * 100;
    return [
      {
        name: 'counters of 10,000 published volumes, all busy',
        value: `${ms.toFixed(0)} ms a minute, ${share.toFixed(2)} % of a core`,
        limit: '< 2 % of a core',
        baseline: `${POOLS * TGTD_MS} ms of it are tgtd's own, as ADR 68 measured them`,
        ok: share < 2,
      },
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const texts = new Map<string, string>();

/** As tgtd writes it, with more of everything in each round. */
function textOf(pool: number, round: number): string {
  const key = `${pool}.${round}`;
  const kept = texts.get(key);
  if (kept !== undefined) return kept;
  const lines = Array.from({ length: VOLUMES_OF_POOL }, (_, n) => {
    const tid = tidOf(pool, n);
    const commands = 10_000 + round * (100 + n);
    return `${tid}   0   ${n + 1}   0   0   0   0   0   0   0   0   0\n${tid}   1   ${n + 1}   ${commands * 4096}   ${commands}   ${commands * 4096}   ${commands}   ${commands * 8192}   ${commands}   ${commands * 8192}   ${commands}   0`;
  });
  const text = ['tgt lun sid', ...lines, ''].join('\n');
  texts.set(key, text);
  return text;
}

const tidOf = (pool: number, n: number): number => 500_000_000 + pool * VOLUMES_OF_POOL + n;

async function publish(house: AdminHouse): Promise<void> {
  const { id, backends } = await house.tenant('counted');
  await house.query(
    `INSERT INTO trivet.pool (tenant_id, backend_id, name, position, state, portals)
     SELECT $1, $2, 'p' || n, n, 'up', ARRAY['127.0.0.1:3260'] FROM generate_series(0, $3::int - 1) AS n`,
    [id, backends.local, POOLS],
  );
  await house.query(
    `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
                                destroy_on_delete, description, config, tid, target)
     SELECT $1, gen_random_uuid(), $2, 'v' || pool || '-' || n, 'ready', '{}', '', 'p' || pool, '', 1, false, false, '', '{}',
            500000000 + pool * $4::int + n, '{"name": "iqn"}'
       FROM generate_series(0, $3::int - 1) AS pool, generate_series(0, $4::int - 1) AS n`,
    [id, backends.local, POOLS, VOLUMES_OF_POOL],
  );
  await house.query('ANALYZE trivet.volume');
}
