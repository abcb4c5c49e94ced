import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { withDatabase } from '../database.js';
import { findProgram } from '../parts/command.js';
import { type Finding, findings, ok, warn } from './check.js';
import { auditFindings, moverFindings, pathOfPool, poolFindings } from './pools.js';

const MOST = 1_000;

/** Pools, what the audit reported, and hosts that nothing but their name protects; of all tenants. */
export function checkBlock(url: string): Promise<Finding[]> {
  return findings('pools', 'see the check of postgres', async () => {
    const [{ reportBackends }, { reportFindings }, { reportHostsWithoutChap }, { oddVolumes }, names] =
      await Promise.all([
        import('#storage/block/pools/pool-report'),
        import('#storage/block/drift/finding-report'),
        import('#storage/block/hosts/host-report'),
        import('#storage/block/drift/odd-sizes'),
        import('#storage/backends/pool-names'),
      ]);
    return withDatabase({ appUrl: url, app: 'doctor' }, async database => {
      const backends = (await reportBackends(database)).filter(({ config }) => Array.isArray(config.pools));
      const found = backends.flatMap(backend =>
        backend.pools.flatMap(pool => poolFindings(pool, pathOfPool(backend, pool.name))),
      );
      const paths = backends.flatMap(backend => backend.pools.map(pool => pathOfPool(backend, pool.name)));
      found.push(...moverFindings(paths.filter(path => path !== undefined && existsSync(path)) as string[]));
      for (const tenantId of new Set(backends.map(backend => backend.tenantId))) {
        found.push(...auditFindings(await reportFindings(database, tenantId, MOST)));
        for (const { pool, backends: sharing } of await names.poolsOfOneName(database, tenantId))
          found.push(
            warn(
              `pool ${pool}`,
              `one tenant has it in ${sharing.join(' and ')}: one tgtd serves both, and takes what one of them does not know for left over`,
              'move the volumes of one to a pool of another name',
            ),
          );
        for (const { name, sizeBytes } of await oddVolumes(database, tenantId, MOST))
          found.push(
            warn(
              `volume ${name}`,
              `its size, ${sizeBytes} bytes, is no multiple of 512: hosts see the rest of its last block as well`,
              'expand it to a multiple of 512 bytes',
            ),
          );
        for (const { name, pool } of await reportHostsWithoutChap(database, tenantId)) {
          const detail = `has no CHAP account, and pool ${pool} is served beyond loopback: its name alone protects its volumes`;
          found.push(warn(`host ${name}`, detail, 'give it chap_user and chap_password (docs/volumes.md, CHAP)'));
        }
      }
      return found;
    });
  });
}

export interface BlockNeeds {
  /** The pool is an XFS image that `up` made. */
  image: boolean;
  exported: boolean;
}

/** Programs that the block side calls, or that its operators need. */
export function checkBlockTools(needs: BlockNeeds, has = (name: string) => findProgram(name) !== undefined): Finding[] {
  const wanted: [name: string, debianPackage: string, use: string][] = [
    ...(needs.exported ? [['tgtd', 'tgt', 'volumes cannot be published'] as [string, string, string]] : []),
    ...(needs.image ? [['xfs_growfs', 'xfsprogs', 'the pool cannot be grown'] as [string, string, string]] : []),
    ['chattr', 'e2fsprogs', 'orphaned snapshots cannot be made writable to be removed'],
  ];
  const missing = wanted.filter(([name]) => !has(name));
  if (missing.length === 0) return [ok('block tools', wanted.map(([name]) => name).join(', '))];
  return missing.map(([name, debianPackage, use]) =>
    warn('block tools', `${name} is not installed: ${use}`, `apt-get install ${debianPackage}`),
  );
}

export const hasImage = (home: string): boolean => existsSync(join(home, 'pool.xfs'));
