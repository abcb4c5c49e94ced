import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';

const sources = ['libs', 'apps/worker', 'apps/gateway']
  .flatMap(folder => readdirSync(join(PACKAGE_ROOT, folder), { recursive: true }).map(file => `${folder}/${file}`))
  .filter(file => /\.ts$/.test(file) && !/\.spec\.ts$|\/conformance\/|node_modules|\/dist\//.test(file));
const having = (pattern: RegExp) =>
  sources.filter(file => pattern.test(readFileSync(join(PACKAGE_ROOT, file), 'utf8'))).sort();

it('signs requests to an object store in one place, which asks the lease', () => {
  expect(having(/\b(S3Client|NodeHttpHandler|SignatureV4)\b/)).toEqual([
    'libs/backends/src/rgw/http-transport.ts',
    'libs/backends/src/rgw/s3-user.ts',
  ]);
});

it('makes a change without a lease only where it is harmless whenever it comes', () => {
  expect(having(/\bunleased\(/)).toEqual([
    'libs/backends/src/fake-block/late-calls.ts',
    'libs/platform/src/lease-signal.ts',
    'libs/storage/src/buckets/bucket-meter.ts',
    'libs/storage/src/drain/backend-ends.ts',
    'libs/storage/src/pools/pool-keeper.ts',
    'libs/storage/src/publications/replay.ts',
  ]);
});

it('lets the engine alone vouch for a lease', () => {
  expect(having(/\bleaseSignal\(/)).toEqual([
    'libs/operations/src/step-context.ts',
    'libs/platform/src/lease-signal.ts',
  ]);
});
