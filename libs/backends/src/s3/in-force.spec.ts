import { afterEach, describe, expect, it } from 'vitest';
import type { Expected, ObjectBackend } from '#backends/object-backend';
import { s3Kind } from '#backends/s3/s3-kind';
import { unleased } from '#platform/lease-signal';
import { type ScriptedAnswer, ScriptedStore } from '#test/support/scripted-store';

const OPEN = { list: { body: '<ListBucketResult/>' }, abort: { status: 404, code: 'NoSuchUpload' } };
const REFUSED = { status: 403, code: 'AccessDenied' };
const NO_BUCKET = { status: 404, code: 'NoSuchBucket' };
const NO_KEY = { status: 403, code: 'InvalidAccessKeyId' };

describe('what is asked as the holder of a key', () => {
  let store: ScriptedStore;
  let backend: ObjectBackend;
  afterEach(async () => {
    backend.close();
    await store.close();
  });

  async function goesBy(expected: Expected, list: ScriptedAnswer, abort: ScriptedAnswer): Promise<boolean> {
    store = await new ScriptedStore(({ what }) => (what.startsWith('DELETE') ? abort : list)).start();
    backend = s3Kind.open(
      s3Kind.parseConfig({ endpoint: store.endpoint }),
      { accessKeyId: 'ours', secretAccessKey: 'ours' },
      { applianceId: 'a', tenantId: 't' },
    );
    const key = { accessKeyId: 'theirs', secretAccessKey: 'theirs' };
    return backend.isInForce(key, expected, unleased(AbortSignal.timeout(30_000)));
  }
  const right = (mode: 'read_write' | 'read_only' | 'write_only' | 'revoked') => [{ bucket: 'photos', mode }];

  it.each([
    ['reads and writes', OPEN.list, OPEN.abort, false],
    ['reads', OPEN.list, REFUSED, false],
    ['writes, and never read', REFUSED, OPEN.abort, false],
    ['is refused both', REFUSED, REFUSED, true],
    ['finds no bucket', NO_BUCKET, NO_BUCKET, true],
    ['has a key that is gone', NO_KEY, NO_KEY, true],
  ] as const)('is revoked when its holder %s: %j %j %s', async (_, list, abort, revoked) => {
    expect(await goesBy(right('revoked'), list, abort)).toBe(revoked);
  });

  it.each([
    ['read_write', OPEN.list, REFUSED, true],
    ['read_only', REFUSED, OPEN.abort, false],
    ['write_only', REFUSED, OPEN.abort, true],
    ['write_only', NO_KEY, NO_KEY, false],
  ] as const)('opens for %s by what that is for: %j %j %s', async (mode, list, abort, open) => {
    expect(await goesBy(right(mode), list, abort)).toBe(open);
  });

  it('opens nothing where no bucket is', async () => {
    await expect(goesBy(right('read_only'), NO_BUCKET, NO_BUCKET)).rejects.toMatchObject({ kind: 'not_found' });
  });

  it.each([
    [OPEN.list, false],
    [NO_KEY, true],
  ] as const)('says that there is no such key when the store does not know it: %j %s', async (list, unknown) => {
    expect(await goesBy('no key', list, OPEN.abort)).toBe(unknown);
    expect(store.requests.map(({ accessKeyId }) => accessKeyId)).toEqual(['theirs']);
  });

  it('asks nobody about nothing', async () => {
    expect(await goesBy([], NO_KEY, NO_KEY)).toBe(true);
    expect(store.asked).toEqual([]);
  });
});
