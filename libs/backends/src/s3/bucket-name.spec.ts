import { describe, expect, it } from 'vitest';
import { checkS3BucketName } from '#backends/s3/bucket-name';

describe('bucket names', () => {
  it.each(['abc', 'bc-0b5e8a54-6d8c-4a0b-9d0e-0d6a3b6b4a11', 'a.b.c', '123', '1.2.3', 'a'.repeat(63)])(
    'accepts %s',
    name => expect(() => checkS3BucketName(name, 'name')).not.toThrow(),
  );

  it.each([
    ['', 'empty'],
    ['ab', '3 to 63'],
    ['a'.repeat(64), 'got 64'],
    ['Photos', 'lower-case'],
    ['fotos-ü', 'lower-case'],
    ['a_b', 'lower-case'],
    ['a/b', 'lower-case'],
    ['a b', 'lower-case'],
    ['abc\n', 'lower-case'],
    ['-abc', 'begin and end'],
    ['abc-', 'begin and end'],
    ['.abc', 'begin and end'],
    ['abc.', 'begin and end'],
    ['a..b', 'a dot'],
    ['a.-b', 'a dot'],
    ['a-.b', 'a dot'],
    ['...', 'begin and end'],
    ['192.168.5.4', 'IP address'],
    ['xn--abc', "'xn--'"],
    ['sthree-abc', "'sthree-'"],
    ['abc-s3alias', "'-s3alias'"],
    ['abc--ol-s3', "'--ol-s3'"],
    ['abc--x-s3', "'--x-s3'"],
    ['abc.mrap', "'.mrap'"],
  ])('refuses %j and says why', (name, why) => {
    expect(() => checkS3BucketName(name, 'bucket_id')).toThrow(
      expect.objectContaining({
        kind: 'invalid_argument',
        field: 'bucket_id',
        message: expect.stringContaining(why),
      }),
    );
  });
});
