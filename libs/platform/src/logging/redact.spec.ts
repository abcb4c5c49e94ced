import { describe, expect, it } from 'vitest';
import { StorageError } from '#platform/errors';
import { isSensitiveName, REDACTED, redact, redactText } from '#platform/logging/redact';

const CANARY = 'cAnArY/0123+secret';

describe('names that hide their value', () => {
  it.each([
    'secret',
    'secretAccessKey',
    'accessSecretKey',
    'access_secret_key',
    'SECRET_KEY',
    'secret-key',
    'password',
    'db_password',
    'passwd',
    'passphrase',
    'token',
    'X-Auth-Token',
    'session_token',
    'refreshTokens',
    'authorization',
    'Authorization',
    'proxy-authorization',
    'cookie',
    'set-cookie',
    'credentials',
    'credential',
    'chap_user',
    'chapPassword',
    'chapSecret',
    'CHAP_USERNAME',
    'privateKey',
    'wrapped_key',
    'dataKey',
    'kek',
    'apiKey',
    'accountKey',
    'AZURE_STORAGE_CONNECTION_STRING',
    'X-Amz-Signature',
    'plaintext',
  ])('%s', name => {
    expect(isSensitiveName(name)).toBe(true);
    expect(redact({ a: [{ b: { [name]: CANARY } }] })).toEqual({ a: [{ b: { [name]: REDACTED } }] });
    expect(JSON.stringify(redact(new Map([[name, { deep: CANARY }]])))).not.toContain(CANARY);
  });

  it.each([
    'accessKeyId',
    'bucket',
    'name',
    'key',
    'kekId',
    'TRIVET_RGW_SECRET_KEY_FILE',
    'kind',
    'operationId',
    'tokenizer',
  ])('not %s', name => {
    expect(redact({ [name]: 'plain' })).toEqual({ [name]: 'plain' });
  });
});

describe('texts', () => {
  it.each([
    [`connect to postgresql://trivet_app:${CANARY}@127.0.0.1:5432/trivet`, 'postgresql://[redacted]@'],
    [`redis://:${CANARY}@localhost:6379 refused`, 'redis://[redacted]@localhost:6379 refused'],
    [`postgresql://u:p@ss${CANARY.replace('/', '')}@h/db`, 'postgresql://[redacted]@h/db'],
    [`GET /?X-Amz-Signature=${CANARY}&a=1`, '&a=1'],
    [`secret_key=${CANARY}`, 'secret_key=[redacted]'],
    [`{"secret_key": "${CANARY} with spaces", "user": "u"}`, '"user": "u"'],
    [`{'password':'${CANARY}'}`, REDACTED],
    [`Authorization: Bearer ${CANARY}`, 'Bearer [redacted]'],
    [`AWS4-HMAC-SHA256 Credential=AK/2026, SignedHeaders=host, Signature=${CANARY}`, 'AWS4-HMAC-SHA256'],
    [`<Key><SecretKey>${CANARY}</SecretKey></Key>`, '<SecretKey>[redacted]</SecretKey>'],
  ])('%s', (text, kept) => {
    const safe = redactText(text);
    expect(safe).not.toContain(CANARY);
    expect(safe).not.toContain(CANARY.replace('/', ''));
    expect(safe).toContain(kept);
  });

  it.each([
    'bucket photos: created',
    'http://127.0.0.1:7480/bucket',
    'token: is required',
    'a=1&b=2',
    'mail me@example.org',
  ])('leaves %s', text => {
    expect(redactText(text)).toBe(text);
  });

  it('cuts what is too long', () => {
    expect(redactText('x'.repeat(100_000)).length).toBeLessThan(20_000);
  });
});

describe('errors', () => {
  it('keep what helps and lose what drivers hang on them', () => {
    const driver = Object.assign(new Error(`connect redis://u:${CANARY}@h failed`), {
      code: 'ECONNREFUSED',
      detail: `Failing row contains (${CANARY})`,
      parameters: [CANARY],
      query: `select '${CANARY}'`,
      command: { name: 'auth', args: [CANARY] },
      config: { headers: { cookie: CANARY } },
    });
    const error = new StorageError('unavailable', 'Redis does not answer', { cause: driver });
    const safe = redact({ err: error }) as { err: Record<string, unknown> };
    expect(JSON.stringify(safe)).not.toContain(CANARY);
    expect(safe.err).toMatchObject({ type: 'StorageError', kind: 'unavailable', message: 'Redis does not answer' });
    expect(safe.err.cause).toMatchObject({ code: 'ECONNREFUSED' });
    expect(safe.err.stack).toContain('redact.spec');
  });

  it('show every error of an aggregate', () => {
    const error = new AggregateError([new Error('one'), new Error(`two password=${CANARY}`)], 'both');
    const text = JSON.stringify(redact(error));
    expect(text).toContain('one');
    expect(text).not.toContain(CANARY);
  });
});

describe('shapes', () => {
  it('survives cycles, depth, getters that throw, bytes and big numbers', () => {
    const cycle: Record<string, unknown> = { name: 'a' };
    cycle.self = cycle;
    expect(redact(cycle)).toEqual({ name: 'a', self: '[circular]' });
    let deep: unknown = { password: CANARY, secretBytes: Buffer.from(CANARY) };
    for (let i = 0; i < 50; i++) deep = { deep };
    expect(JSON.stringify(redact(deep))).not.toContain(CANARY);
    const throwing = Object.defineProperty({}, 'x', {
      enumerable: true,
      get: () => {
        throw new Error('no');
      },
    });
    expect(redact(throwing)).toBe('[unreadable]');
    expect(redact({ size: 2n ** 60n, bytes: Buffer.from(CANARY) })).toEqual({
      size: String(2n ** 60n),
      bytes: '[18 bytes]',
    });
    expect((redact(Array.from({ length: 500 }, (_, i) => i)) as unknown[]).length).toBe(101);
    expect(redact({ at: new Date(0), same: [1, 1] })).toEqual({ at: '1970-01-01T00:00:00.000Z', same: [1, 1] });
  });
});
