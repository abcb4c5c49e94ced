import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { blockCases, blockLeg, cephCases } from '#test/block-crash/crash-points';
import { failpointsOf } from '#test/failpoints/failpoints-of';
import type { BlockKind } from '#test/support/block-folders';

/** What the files beside this one say: house and kinds. */
const planned = readdirSync(import.meta.dirname)
  .filter(name => /^kill-.*\.spec\.ts$/.test(name))
  .map(name => {
    const text = readFileSync(join(import.meta.dirname, name), 'utf8');
    const [, house, kinds] = /describeBlockCrashPoints\(\s*'([\w-]+)',\s*\[([^\]]*)\]/.exec(text)!;
    return { house: house as BlockKind, kinds: [...kinds!.matchAll(/'([^']+)'/g)].map(found => found[1]!) };
  });

it('has a file for each point of each kind of block operation', () => {
  const { handlers } = blockLeg('xfs', false);
  const killed = planned
    .filter(({ house }) => house !== 'rbd')
    .flatMap(({ house, kinds }) => kinds.flatMap(kind => blockCases(house, kind)));
  const points = new Set(killed.map(({ at }) => at.replace(/@\d+$/, '')));
  const missing = handlers.flatMap(handler => failpointsOf(handler)).filter(point => !points.has(point));
  expect(missing).toEqual([]);
  expect(points.size).toBeGreaterThan(150);
});

it('has a case for each place where the adapter of images of Ceph leaves another state', () => {
  const folder = join(PACKAGE_ROOT, 'libs', 'backends', 'src', 'rbd');
  const places = readdirSync(folder).flatMap(name =>
    [...readFileSync(join(folder, name), 'utf8').matchAll(/failpoint\('([^']+)'\)/g)].map(found => found[1]!),
  );
  const kinds = planned.filter(({ house }) => house === 'rbd').flatMap(one => one.kinds);
  const cases = kinds.flatMap(kind => cephCases(blockLeg('rbd', false), kind, true));
  const killed = new Set(cases.map(({ at }) => at.replace(/@\d+$/, '')));
  expect(places.filter(place => !killed.has(place))).toEqual([]);
  expect(places.length).toBeGreaterThan(15);
});
