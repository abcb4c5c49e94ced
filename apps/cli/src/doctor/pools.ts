import { readdirSync, readFileSync } from 'node:fs';
import type { FindingReport } from '#storage/block/drift/finding-report';
import { POOL_MARKS } from '#storage/block/pools/pool-marks';
import { type BackendReport, type PoolReport, usedShare } from '#storage/block/pools/pool-report';
import { isLocal, nodesCannotCome, SERVE_NODES, servesNodes } from '#storage/block/pools/portals';
import { humanBytes } from '../human-bytes.js';
import { optionsOf } from '../processes/mounts.js';
import { type Finding, fail, ok, warn } from './check.js';

/** Workers look every few seconds. */
const STALE_SECONDS = 60;
/** Of one kind; the rest is a number. */
const SHOWN = 10;

/** @param path where the registry says that it is; undefined: it has no such pool any more */
export function poolFindings(pool: PoolReport, path: string | undefined): Finding[] {
  const name = `pool ${pool.name}`;
  if (path === undefined) {
    if (pool.volumes === 0) return [];
    return [fail(name, `TRIVET_POOLS does not name it, and ${pool.volumes} volumes are in it`, 'name it again')];
  }
  if (pool.ageSeconds > STALE_SECONDS) {
    const minutes = Math.round(pool.ageSeconds / 60);
    return [fail(name, `no worker has looked at it for ${minutes} min`, 'start a worker on the host that has it')];
  }
  if (pool.state === 'down') {
    const remedy = `mount the file system that belongs at ${path}; nothing is lost, and everything goes on by itself`;
    return [fail(name, pool.reason ?? 'down', remedy)];
  }
  const share = usedShare(pool);
  const used = `${(share * 100).toFixed(1)} % of ${humanBytes(pool.totalBytes)} used`;
  const makeRoom = 'delete volumes or snapshots, or grow the file system (docs/volumes.md, Pools)';
  const found: Finding[] = [];
  if (share > POOL_MARKS.full) {
    found.push(fail(name, `${used}; deleted volumes leave the recycle bin before their time`, makeRoom));
  } else if (share > POOL_MARKS.filling) found.push(warn(name, `${used}; nothing new is made in it`, makeRoom));
  else found.push(ok(name, `${used}, ${pool.volumes} volumes, marker ${pool.uuid ?? 'unknown'}`));
  if (pool.clone === 'copy') {
    found.push(warn(name, `${path} cannot share blocks: snapshots and clones copy`, 'use a pool on XFS or btrfs'));
  }
  const { portals } = pool;
  if (portals.length === 0) return found;
  if (isLocal(portals))
    found.push(ok(name, `is served on this host alone, at ${portals.join(', ')}: no node comes here`));
  else if (!servesNodes(portals)) found.push(warn(name, nodesCannotCome(portals), SERVE_NODES));
  return found;
}

/** Programs that move the blocks of files, by which changed blocks are told (invariant C7). */
const MOVERS = ['xfs_fsr', 'duperemove', 'beesd', 'bees', 'e4defrag'];

/** Defragmentation and deduplication make changed blocks look like others, and cost each snapshot its shared ones. */
export function moverFindings(paths: readonly string[], running = runningCommands(), options = optionsOf): Finding[] {
  if (paths.length === 0) return [];
  const found = MOVERS.filter(name => running.has(name)).map(name =>
    warn('pools', `${name} runs on this host`, 'keep it away from pools: no defragmentation, no deduplication there'),
  );
  for (const path of paths) {
    const [mounted, without] = [options(path), 'mount it without'];
    if (mounted.includes('autodefrag')) found.push(warn('pools', `${path} is mounted with autodefrag`, without));
    const compress = mounted.find(option => /^compress(-force)?(=|$)/.test(option));
    if (compress === undefined || compress.endsWith('=no')) continue;
    found.push(
      warn('pools', `${path} is mounted with ${compress}: all that is compressed is told as changed`, without),
    );
  }
  return found;
}

function runningCommands(): Set<string> {
  const commands = new Set<string>();
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      commands.add(readFileSync(`/proc/${pid}/comm`, 'utf8').trim());
    } catch {
      // It has ended meanwhile.
    }
  }
  return commands;
}

export function pathOfPool({ config }: BackendReport, pool: string): string | undefined {
  const pools = Array.isArray(config.pools) ? (config.pools as { name: string; path: string }[]) : [];
  return pools.find(({ name }) => name === pool)?.path;
}

type Judgement = (finding: FindingReport) => Finding;
const JUDGE: Readonly<Record<string, Judgement>> = {
  lost_image: ({ message }) =>
    fail(
      'lost image',
      message,
      'put the file back from a backup of the pool, or delete the volume (runbook, TrivetImageLost)',
    ),
  larger_image: ({ message }) => warn('larger image', message, 'nothing is lost (runbook, TrivetOrphans)'),
  orphan_image: ({ subject, message }) =>
    warn(
      'orphaned image',
      `${subject}: ${message}`,
      'if nobody needs it: chattr -i FILE, rm FILE (runbook, TrivetOrphans)',
    ),
  orphan_target: ({ subject, message }) =>
    warn(
      'orphaned target',
      `${subject}: ${message}`,
      'if no host uses it: end its tgtd, workers start another (runbook, TrivetOrphans)',
    ),
  protection_paused: ({ pool, message }) =>
    warn('protection', message, `make room in pool ${pool}; the schedules go on by themselves`),
};

/** What the audit reported, each with what to do. */
export function auditFindings(reported: readonly FindingReport[]): Finding[] {
  const kinds = new Map<string, Finding[]>();
  for (const finding of reported) {
    const judge = JUDGE[finding.kind] ?? (({ kind, message }) => warn(kind, message, './trivet pool findings'));
    kinds.set(finding.kind, [...(kinds.get(finding.kind) ?? []), judge(finding)]);
  }
  return [...kinds.values()].flatMap(found => {
    const rest = found.length - SHOWN;
    if (rest <= 0) return found;
    const first = found[0] as Finding;
    return [...found.slice(0, SHOWN), { ...first, detail: `and ${rest} more`, remedy: './trivet pool findings' }];
  });
}
