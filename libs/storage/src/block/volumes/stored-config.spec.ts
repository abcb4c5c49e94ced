import { describe, expect, it } from 'vitest';
import { importedFrom, isOfOneHost, said, settingsOf } from '#storage/block/volumes/stored-config';

describe('what rows say in their config', () => {
  it('is read as callers of every release have written it', () => {
    const all = { pool: 'slow', folder: 'a/b', thick: true, limitIops: 100, limitMbps: -1, destroyOnDelete: false };
    const texts = { pool: 'slow', folder: 'a/b', thick: 'true', limit_iops: '100', limit_mbps: '-1' };
    expect(settingsOf({ ...texts, destroy_on_delete: 'false' })).toEqual(all);
    expect(settingsOf({ ...texts, thick: true, limit_iops: 100, destroy_on_delete: false })).toEqual(all);
  });

  it('is nothing about what they do not name', () => {
    expect(Object.keys(settingsOf({ fs_type: 'xfs', destroyOnDelete: 'true' }))).toEqual([]);
    expect(said({ thick: false, pool: undefined })).toEqual({ thick: false });
    expect(Object.keys(said({ pool: undefined }))).toEqual([]);
    expect(importedFrom({})).toBeUndefined();
  });

  it.each([
    [{ multi_initiator: false }, true],
    [{ multi_initiator: 'false' }, true],
    [{ multiInitiator: 'false' }, true],
    [{ multi_initiator: 'true' }, false],
    [{}, false],
  ])('of one host: %j is %s', (config, one) => {
    expect(isOfOneHost(config)).toBe(one);
  });
});
