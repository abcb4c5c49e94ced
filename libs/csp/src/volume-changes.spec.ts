import { describe, expect, it } from 'vitest';
import { parseBody } from '#csp/request-body';
import { DRIVER_KEYS, EDITABLE_KEYS, toVolumeChanges, updateVolumeBody } from '#csp/volume-changes';

const ID = '00000000-0000-4000-8000-000000000001';
const GROUP = '00000000-0000-4000-8000-000000000002';
const changesOf = (body: Record<string, unknown>) => toVolumeChanges(ID, parseBody(updateVolumeBody, body));

describe('changes of a volume', () => {
  it.each([
    [{ volume_group_id: '' }, null],
    [{ id: ID, volume_group_id: '' }, null],
    [{ volume_group_id: '', config: {} }, null],
    [{ volume_group_id: GROUP }, GROUP],
    [{ volume_group_id: GROUP, size: 1 }, GROUP],
    [{ volume_group_id: '', size: 1 }, undefined],
    [{ volume_group_id: '', description: '' }, undefined],
    [{ volume_group_id: '', config: { fs_mode: '0' } }, undefined],
    [{ size: 1 }, undefined],
  ])('%j: the group becomes %j', (body, expected) => {
    expect(changesOf(body)?.volumeGroupId).toBe(expected);
    expect('volumeGroupId' in (changesOf(body) ?? {})).toBe(expected !== undefined);
  });

  it.each([{}, { id: ID }, { config: {} }, { config: null }])('%j: none', body => {
    expect(changesOf(body)).toBeUndefined();
  });

  it('name what they change, and keep the values as they came', () => {
    const config = {
      performance_policy: 'SQL Server',
      protection_template: 'Retain-30Daily',
      destroy_on_delete: 'true',
      limit_iops: '5000',
      limit_mbps: 100,
      sync_on_detach: 'false',
      description: 'lifted',
    };
    expect(changesOf({ size: '2', config })).toEqual({
      sizeBytes: 2n,
      description: 'lifted',
      performancePolicy: 'SQL Server',
      protectionTemplate: 'Retain-30Daily',
      destroyOnDelete: true,
      limitIops: 5000,
      limitMbps: 100,
      config,
    });
    expect(changesOf({ description: 'top', config: { description: 'lower' } })?.description).toBe('top');
    expect(changesOf({ config: { protection_template: '' } })?.protectionTemplate).toBeNull();
  });

  it('may be of every key that is listed, and of those of driver and CO', () => {
    const value = (key: string) =>
      ({ destroy_on_delete: true, sync_on_detach: true, multi_initiator: true, limit_iops: -1, limit_mbps: -1 })[key] ??
      'x';
    for (const key of [...EDITABLE_KEYS, ...DRIVER_KEYS, 'csi.storage.k8s.io/pvc/name', 'nfs_mount_options'])
      expect(changesOf({ config: { [key]: value(key) } })?.config).toEqual({ [key]: value(key) });
  });

  it.each([
    'thick',
    'pool',
    'folder',
    'encrypted',
    'dedupe_enabled',
    'clone_of',
    'target_scope',
    'xnfs_',
    'constructor',
  ])('are not of %s', key => {
    expect(() => changesOf({ description: 'd', config: { [key]: 'x' } })).toThrow(`Unexpected argument '${key}'.`);
  });

  it.each(['name', 'published', 'constructor'])('are not of the member %s', key => {
    expect(() => changesOf({ [key]: 'x' })).toThrow(`Unexpected argument '${key}'.`);
  });
});
