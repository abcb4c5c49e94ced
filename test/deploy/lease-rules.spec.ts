import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';
import { PACKAGE_ROOT } from '#platform/package-root';

const sources = ['libs', 'apps/worker', 'apps/gateway']
  .flatMap(folder => readdirSync(join(PACKAGE_ROOT, folder), { recursive: true }).map(file => `${folder}/${file}`))
  .filter(file => /\.ts$/.test(file) && !/\.spec\.ts$|\/conformance\/|node_modules|\/dist\//.test(file));
const having = (pattern: RegExp) =>
  sources.filter(file => pattern.test(readFileSync(join(PACKAGE_ROOT, file), 'utf8'))).sort();

it('signs requests to an object store in one place, which asks the lease', () => {
  expect(having(/\b(S3Client|IAMClient|STSClient|NodeHttpHandler|SignatureV4)\b/)).toEqual([
    'libs/backends/src/s3/http-transport.ts',
    'libs/backends/src/s3/iam.ts',
    'libs/backends/src/s3/s3-user.ts',
  ]);
});

it('makes a change without a lease only where it is harmless whenever it comes', () => {
  expect(having(/\bunleased\(/)).toEqual([
    'libs/backends/src/rbd/rbd-list.ts',
    'libs/backends/src/rbd/rbd-staging.ts',
    'libs/platform/src/lease-signal.ts',
    'libs/storage/src/backends/backend-tester.ts',
    'libs/storage/src/block/export-leases/come-back.ts',
    'libs/storage/src/block/export-leases/export-lease-keeper.ts',
    'libs/storage/src/block/pools/pool-monitor.ts',
    'libs/storage/src/block/publications/export-supervisor.ts',
    'libs/storage/src/drain/backend-ends.ts',
    'libs/storage/src/object/buckets/bucket-meter.ts',
  ]);
});

it('lets the engine alone vouch for a lease', () => {
  expect(having(/\bleaseSignal\(/)).toEqual([
    'libs/operations/src/running/step-context.ts',
    'libs/platform/src/lease-signal.ts',
  ]);
});

/** Methods of a port that are called without a lease. */
function unleasedOf(port: string, file: string): string[] {
  const [, body = ''] = new RegExp(`export interface ${port} \\{\n([\\s\\S]*?)\n\\}`).exec(
    readFileSync(join(PACKAGE_ROOT, 'libs/backends/src', file), 'utf8'),
  )!;
  return body
    .replace(/\/\*\*[\s\S]*?\*\//g, '')
    .split(/;\n/)
    .filter(method => !method.includes('signal: LeaseSignal'))
    .map(method => /\w+/.exec(method)![0]);
}

it.each([
  [
    'ObjectBackend',
    'object-backend.ts',
    'health diagnose inspectBucket isBucketEmpty traits holdsPrincipal holdsGrants signAccess measureBucket close',
  ],
  [
    'BlockBackend',
    'block-backend.ts',
    'health inspectPools surveyPool inspectImage predictCut listImages pathOf close',
  ],
  ['Exporter', 'exporter.ts', 'health daemonInstance listTargets ioSince writers suspectTargets close'],
])('asks %s without a lease only for what it reads', (port, file, reading) => {
  expect(unleasedOf(port, file).join(' ')).toBe(reading);
});

it('takes no plain signal for one that answers for a lease', () => {
  // @ts-expect-error nobody vouches for it
  const plain: LeaseSignal = AbortSignal.timeout(60_000);
  expect(() => mayChange(plain)).toThrow(TypeError);
});
