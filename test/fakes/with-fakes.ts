import type { BackendDefinition } from '#tenancy/setup/setup';

/** SQLite files that the processes of an appliance share with a test. */
export interface FakeFiles {
  /** Of the object store. */
  object: string;
  /** Of faults before block volumes; absent: they are real. */
  block?: string | undefined;
}

/**
 * The backends of an appliance of tests: those that its environment names, and an object store `fake`. Pools are behind the
 * fake's faults, and are exported nowhere, where it has a file for that.
 */
export function withFakes(named: readonly BackendDefinition[], { object, block }: FakeFiles): BackendDefinition[] {
  const fake = { name: 'fake', kind: 'fake', config: { file: object }, credentials: {} };
  if (block === undefined) return [...named, fake];
  const faulty = named.map(backend => {
    if (backend.kind !== 'reflink') return backend;
    const { pools, addresses } = backend.config;
    return { ...backend, kind: 'fake-block', config: { file: block, pools, addresses } };
  });
  return [...faulty, fake];
}
