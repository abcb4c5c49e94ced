import { describe, expect, it } from 'vitest';
import { checkId, checkMap, checkName, checkV1alpha2Id, MAX_ID, MAX_MAP, MAX_NAME } from '#cosi/request-checks';

/** Labels of up to 63 characters; the rules know only the whole. */
const longName = (length: number): string => 'a'.repeat(length);

describe('request checks', () => {
  it('names: up to 253 bytes of a DNS subdomain', () => {
    for (const name of ['a', '0', 'ba-6f1c', 'bc-1.example.org', longName(MAX_NAME)]) checkName('name', name);
    for (const name of ['', longName(MAX_NAME + 1), 'A', 'a_b', '-a', 'a-', 'a.', '.a', 'a..b', 'a-.b', 'ä', 'a/b']) {
      expect(() => checkName('name', name), name).toThrow(expect.objectContaining({ field: 'name' }));
    }
  });

  it('sizes are bytes, not characters', () => {
    checkId('bucket_id', 'ü'.repeat(MAX_ID / 2));
    expect(() => checkId('bucket_id', 'ü'.repeat(MAX_ID / 2 + 1))).toThrow('must not exceed 2048 bytes, got 2050');
  });

  it('ids: any text that may be another driver’s, or those of v1alpha2', () => {
    for (const id of ['a', 'backend:bucket=', 'eyJhIjoxfQ==', 'Ünlü']) checkId('bucket_id', id);
    for (const id of ['', 'a\u0000', 'a\nb', '\u007f']) expect(() => checkId('bucket_id', id)).toThrow('bucket_id: ');
    for (const id of ['Typed_by/an.Admin-1', longName(MAX_ID)]) checkV1alpha2Id('bucket_id', id);
    for (const id of ['a:b', 'a=', 'a b', longName(MAX_ID + 1)]) {
      expect(() => checkV1alpha2Id('bucket_id', id)).toThrow('bucket_id: ');
    }
  });

  it('maps: up to 4 KiB of keys and values', () => {
    checkMap('parameters', {});
    checkMap('parameters', { key: 'x'.repeat(MAX_MAP - 3) });
    expect(() => checkMap('parameters', { key: 'x'.repeat(MAX_MAP - 2) })).toThrow('parameters: must not exceed 4096');
    const many = Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`key-${index}`, 'x']));
    expect(() => checkMap('parameters', many)).toThrow('parameters: must not exceed 4096');
    expect(() => checkMap('parameters', { key: 'a\u0007' })).toThrow('parameters[key]: ');
  });
});
