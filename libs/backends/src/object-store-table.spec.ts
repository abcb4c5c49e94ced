import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { ObjectBackendKind } from '#backends/object-backend';
import { objectStoreTable, withTable } from '#backends/object-store-table';
import { objectBackendKinds } from '#backends/registry';
import { PACKAGE_ROOT } from '#platform/package-root';

it('stands in docs/buckets.md as the kinds say it: ./trivet openapi writes it', () => {
  const kept = readFileSync(join(PACKAGE_ROOT, 'docs/buckets.md'), 'utf8');
  const table = objectStoreTable(objectBackendKinds());
  expect(kept).toContain(table);
  expect(withTable(kept.replace(table, '| |'), table)).toBe(kept);
});

it('wants a word for each capability, and a configuration of each kind', () => {
  const [rgw] = objectBackendKinds() as [ObjectBackendKind];
  const registration = { ...rgw.registration, capabilities: () => ({ teleport: true }) };
  expect(() => objectStoreTable([{ ...rgw, registration }])).toThrow('capability teleport of kind rgw has no title');
  expect(() => objectStoreTable([{ ...rgw, kind: 'new' }])).toThrow('kind new');
});
