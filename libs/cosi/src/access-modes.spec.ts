import { describe, expect, it } from 'vitest';
import { decodeAccessModes } from '#cosi/access-modes';
import type { AccessedBucket } from '#cosi/v1alpha2-messages';
import type { Endpoint } from '#storage/object/endpoint';

const wrap = (mode: number | null) => (mode === null ? null : { mode });
const bucket = (data: number | null, object: number | null = null, metadata: number | null = null): AccessedBucket => ({
  bucketId: 'b',
  accessMode: wrap(data),
  objectMetadataAccessMode: wrap(object),
  bucketMetadataAccessMode: wrap(metadata),
});
const decode = (buckets: AccessedBucket[], setting: Endpoint['accessModeNumbers'] = 'auto') =>
  decodeAccessModes(buckets, setting);

describe('access modes', () => {
  it.each([
    [1, 'read_write'],
    [2, 'read_only'],
    [3, 'write_only'],
  ])('number %i of R1 is %s', (number, mode) => {
    expect(decode([bucket(number)])).toEqual([mode]);
    expect(decode([bucket(number)], 'r1')).toEqual([mode]);
  });

  it.each([
    [1, 'read_only'], // ANY
    [2, 'read_write'],
    [3, 'read_only'],
    [4, 'write_only'],
  ])('number %i of R3 is %s', (number, mode) => {
    expect(decode([bucket(number, 1, 1)])).toEqual([mode]);
    expect(decode([bucket(number)], 'r3')).toEqual([mode]);
  });

  it('is read by field 3 or field 4 alone, and asks for the other', () => {
    expect(() => decode([bucket(2, 1, null)])).toThrow('buckets[0].bucket_metadata_access_mode: required');
    expect(() => decode([bucket(2, null, 1)])).toThrow('buckets[0].object_metadata_access_mode: required');
  });

  it.each([
    ['auto', bucket(0), 'access_mode'],
    ['auto', bucket(null), 'access_mode'],
    ['auto', bucket(4), 'access_mode'],
    ['r1', bucket(4), 'access_mode'],
    ['r3', bucket(0), 'access_mode'],
    ['r3', bucket(5), 'access_mode'],
    ['r3', bucket(-1), 'access_mode'],
    ['auto', bucket(0, 1, 1), 'object_data_access_mode'],
    ['auto', bucket(5, 1, 1), 'object_data_access_mode'],
    ['auto', bucket(2, 0, 1), 'object_metadata_access_mode'],
    ['auto', bucket(2, 3, 1), 'object_metadata_access_mode'],
    ['auto', bucket(2, 1, 2), 'bucket_metadata_access_mode'],
    ['auto', bucket(4, 1, 3), 'bucket_metadata_access_mode'],
    ['r1', bucket(2, 1, 1), 'object_metadata_access_mode'],
  ] as const)('%s: %j is refused by %s', (setting, wish, field) => {
    expect(() => decode([wish], setting)).toThrow(
      expect.objectContaining({ kind: 'invalid_argument', field: expect.stringMatching(new RegExp(`${field}$`)) }),
    );
  });
});
