import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadSync } from '@grpc/proto-loader';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import { compileWireCheck } from '#cosi/wire-check';
import { PACKAGE_ROOT } from '#platform/package-root';

const FILE = join(PACKAGE_ROOT, 'proto/cosi/v1alpha2/cosi.proto');
const PKG = 'sigs.k8s.io.cosi.v1alpha2';
const GRANT = 'DriverGrantBucketAccessRequest';
const check = compileWireCheck(loadSync(FILE), PKG, GRANT);
const type = protobuf.parse(readFileSync(FILE, 'utf8')).root.lookupType(`${PKG}.${GRANT}`);

const text = fc.string({ unit: 'binary', maxLength: 40 });
const wrapper = <T extends string>(key: T) => fc.option(fc.record({ [key]: fc.integer({ min: -1, max: 200 }) }));
const grant = fc.record({
  accountName: text,
  protocol: wrapper('type'),
  serviceAccountName: text,
  parameters: fc.dictionary(text, text, { maxKeys: 4 }),
  buckets: fc.array(fc.record({ bucketId: text, accessMode: wrapper('mode') }), { maxLength: 4 }),
});
const encode = (message: object): Buffer => Buffer.from(type.encode(type.fromObject(message)).finish());

describe('the wire check', () => {
  it('passes every message that another encoder wrote', () => {
    fc.assert(
      fc.property(grant, message => {
        expect(check(encode(message))).toBeUndefined();
      }),
      { seed: 1, numRuns: 300 },
    );
  });

  it('finds every message whose last field is cut', () => {
    fc.assert(
      fc.property(grant, text, fc.nat(), (message, last, cut) => {
        const whole = encode(message);
        const field = encode({ serviceAccountName: `${last}!` });
        const bytes = Buffer.concat([whole, field.subarray(0, 1 + (cut % (field.length - 1)))]);
        expect(check(bytes)).toBeTypeOf('string');
      }),
      { seed: 2, numRuns: 300 },
    );
  });

  it('ends on any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), bytes => {
        const fault = check(Buffer.from(bytes));
        expect(fault === undefined || fault.length > 0).toBe(true);
      }),
      { seed: 3, numRuns: 2_000 },
    );
  });

  it('names the field', () => {
    const bucket = (content: number[]) => Buffer.from([0x32, content.length, ...content]);
    expect(check(Buffer.from([0x08, 0x01]))).toBe('accountName: wrong wire type 0');
    expect(check(bucket([0x0a, 0x01, 0xff]))).toBe('buckets.bucketId: not UTF-8');
    expect(check(bucket([0x0a, 0x07, 0x61]))).toBe('buckets.bucketId: ends beyond its message');
    expect(check(bucket([0x12, 0x01, 0x08]))).toBe('buckets.accessMode.mode: bad number');
  });
});
