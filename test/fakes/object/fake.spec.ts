import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { describeObjectBackend } from '#backends/conformance/object-backend.conformance';
import type { ObjectBackendHarness } from '#backends/conformance/object-world';
import type { BucketSpec } from '#backends/object-backend';
import { FakeControl } from '#test/fakes/object/fake-control';
import { fakeIamKind, fakeKind } from '#test/fakes/object/fake-kind';

const folder = mkdtempSync(join(tmpdir(), 'trivet-fake-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const places = [
  ['fake in memory', fakeKind, ':memory:conformance'],
  ['fake in a file', fakeKind, join(folder, 'fake.db')],
  ['fake with IAM', fakeIamKind, ':memory:iam'],
] as const;

for (const [name, kind, kept] of places) {
  const setup = async (): Promise<ObjectBackendHarness> => {
    const open = (file: string, tenantId: string) =>
      kind.open(kind.parseConfig({ file, emptyPortion: 2 }), {}, { applianceId: 'appliance', tenantId });
    const broken = (name: string, error: 'unavailable' | 'unauthenticated') => {
      const file = kept.startsWith(':') ? `${kept}-${name}` : join(folder, `${name}.db`);
      const control = new FakeControl(file);
      control.addFault({ mode: 'fail-before', error, count: 1_000_000 });
      return { control, backend: open(file, 'default') };
    };
    const control = new FakeControl(kept);
    const backend = open(kept, 'default');
    const otherTenant = open(kept, 'other');
    const down = broken('down', 'unavailable');
    const refused = broken('refused', 'unauthenticated');
    return {
      backend,
      otherTenant,
      unreachable: down.backend,
      refused: refused.backend,
      prefix: 'conformance-',
      seedForeignBucket: async name => control.seedForeignBucket(name),
      replaceForeignBucket: async name => {
        control.dropBucket(name);
        control.seedForeignBucket(name);
      },
      foreignBucketExists: async name => control.bucket(name)?.owner === 'foreign',
      seedObjects: async (name, count) => control.seedObjects(name, count),
      seedLockedObject: async name => {
        control.seedObjects(name, 1, 'locked/object');
        return 'locked/object';
      },
      dropTags: async name => control.dropTags(name),
      bucketSpec: async name => {
        const spec = JSON.parse(control.bucket(name)?.spec ?? '{}') as BucketSpec;
        const { versioning, quotaMaxSize, quotaMaxObjects, tags } = spec;
        return { versioning, quotaMaxSize, quotaMaxObjects, tags };
      },
      seedKey: async uid => control.seedKey(uid),
      principalKeys: async uid => control.principals().find(p => p.uid === uid)?.keys,
      trustOf: async uid => control.trustOf(uid),
      seedTrust: async (uid, account) => control.seedTrust(uid, account),
      grants: async name => control.grants(name),
      close: async () => {
        for (const part of [
          backend,
          otherTenant,
          down.backend,
          refused.backend,
          control,
          down.control,
          refused.control,
        ])
          part.close();
      },
    };
  };
  describeObjectBackend(
    name,
    setup,
    kind === fakeIamKind ? { issuesKeys: true, namesAlone: true, serviceAccounts: true } : {},
  );
}
