import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ObjectBackend } from '#backends/object-backend';
import type { BackendRegistry } from '#backends/registry';
import type { SecretBox } from '#platform/crypto/secrets';
import type { Database } from '#platform/database/database';
import { BackendDirectory } from '#storage/shared/backend-directory';

const [TENANT, BACKEND] = ['the-tenant', 'the-backend'];
let rows: object[];
let failure: Error | undefined;
const query = vi.fn(async () => {
  if (failure) throw failure;
  return rows;
});
const database = { withTenant: async (_: string, work: (tx: unknown) => unknown) => work({ query }) };
const registry = { open: ({ version }: { version: number }) => ({ version }) };
let directory: BackendDirectory<ObjectBackend>;
beforeEach(() => {
  rows = [{ kind: 'fake', config: {}, version: 1, sealed: null }];
  failure = undefined;
  query.mockClear();
  directory = new BackendDirectory(
    database as unknown as Database,
    registry as unknown as BackendRegistry<ObjectBackend>,
    {} as SecretBox,
  );
});

describe('the directory of backends', () => {
  it('reads once for all who ask at the same moment, and for those of the next seconds', async () => {
    await Promise.all(Array.from({ length: 20 }, () => directory.open(TENANT, BACKEND)));
    await directory.open(TENANT, BACKEND);
    expect(query).toHaveBeenCalledTimes(1);
  });

  it('reads anew for who asks so, whoever else reads', async () => {
    const opened = [directory.open(TENANT, BACKEND), directory.open(TENANT, BACKEND, { fresh: true })];
    await Promise.all(opened);
    expect(query).toHaveBeenCalledTimes(2);
    rows = [{ ...rows[0], version: 2 }];
    expect(await directory.open(TENANT, BACKEND, { fresh: true })).toEqual({ version: 2 });
    expect(await directory.open(TENANT, BACKEND)).toEqual({ version: 2 });
  });

  it('tells all of them that a read failed, and the next one reads again', async () => {
    failure = new Error('away');
    const settled = await Promise.allSettled([directory.open(TENANT, BACKEND), directory.open(TENANT, BACKEND)]);
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    failure = undefined;
    expect(await directory.open(TENANT, BACKEND)).toEqual({ version: 1 });
  });
});
