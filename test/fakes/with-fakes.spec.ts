import { describe, expect, it } from 'vitest';
import { blockBackendKinds, objectBackendKinds } from '#backends/registry';
import { loadConfig } from '#platform/config/config';
import { backendsOf } from '#tenancy/setup/setup';
import { withFakes } from '#test/fakes/with-fakes';

const named = backendsOf(
  loadConfig([], { TRIVET_POOLS: 'ssd=/s', TRIVET_ISCSI_PORTALS: '192.0.2.7:3260', TRIVET_TGT_DIR: '/tgt' }),
);
const fake = { name: 'fake', kind: 'fake', config: { file: '/o' }, credentials: {} };

describe('the backends of an appliance of tests', () => {
  it('are those of the environment, and a fake object store', () => {
    expect(named).toMatchObject([{ name: 'local', kind: 'reflink' }]);
    expect(withFakes(named, { object: '/o' })).toEqual([...named, fake]);
  });

  it('have faults before the same pools', () => {
    const pools = [{ name: 'ssd', path: '/s', portals: ['192.0.2.7:3260'], withoutChap: false }];
    expect(withFakes(named, { object: '/o', block: '/b' })).toEqual([
      { name: 'local', kind: 'fake-block', config: { file: '/b', pools, addresses: ['192.0.2.7'] }, credentials: {} },
      fake,
    ]);
  });

  it('are of kinds that a process knows only from tests', async () => {
    const known = () => [objectBackendKinds(), blockBackendKinds()].map(kinds => kinds.map(({ kind }) => kind));
    expect(known()).toEqual([
      ['rgw', 's3', 'azure', 'garage', 'gcs'],
      ['reflink', 'rbd'],
    ]);
    await import('#test/fakes/kinds');
    expect(known()).toEqual([
      ['rgw', 's3', 'azure', 'garage', 'gcs', 'fake', 'fake-iam', 'fake-signing'],
      ['reflink', 'rbd', 'fake-block'],
    ]);
  });
});
