import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { translate } from '#backends/azure/errors';

const context = (readOnly = false, signal: AbortSignal = new AbortController().signal) => ({
  doing: 'create bucket photos',
  resource: 'bucket photos',
  readOnly,
  signal,
});
const answered = (statusCode: number, code: string, message = '') => ({ name: 'RestError', statusCode, code, message });

it.each([
  [403, 'AuthenticationFailed', 'unauthenticated', /15 minutes/],
  [403, 'AuthorizationFailure', 'permission_denied', /network rule/],
  [403, 'KeyBasedAuthenticationNotPermitted', 'permission_denied', /account key access/],
  [404, 'ContainerNotFound', 'not_found', /404/],
  [409, 'ContainerAlreadyExists', 'already_exists', /409/],
  [409, 'ContainerBeingDeleted', 'unavailable', /still being deleted/],
  [412, 'LeaseIdMissing', 'failed_precondition', /412/],
  [500, 'OperationTimedOut', 'timeout', /500/],
  [503, 'ServerBusy', 'unavailable', /503/],
  [429, 'Other', 'unavailable', /429/],
])('%d %s is %s', (status, code, kind, words) => {
  expect(translate(answered(status, code), context())).toMatchObject({ kind, message: expect.stringMatching(words) });
});

it('tells a wrong key by the words, where the code is that of a network rule', () => {
  const error = answered(403, 'AuthorizationFailure', 'Server failed to authenticate the request. Make sure ...');
  expect(translate(error, context()).kind).toBe('unauthenticated');
});

it.each([
  ['ECONNREFUSED', false, 'unavailable'],
  ['ECONNRESET', false, 'timeout'],
  ['ECONNRESET', true, 'unavailable'],
  ['PARSE_ERROR', false, 'internal'],
])('%s while only reading: %s, is %s', (code, readOnly, kind) => {
  expect(translate({ name: 'RestError', code }, context(readOnly)).kind).toBe(kind);
});

it('keeps nothing of the request', () => {
  const request = { url: 'https://x/photos?sig=SECRET', headers: { authorization: 'SharedKey x:SECRET' } };
  const error = translate({ ...answered(500, 'InternalError'), request }, context());
  expect(inspect(error, { depth: 9 })).not.toContain('SECRET');
});

it('is without an answer when its time is over', () => {
  expect(translate(new Error('aborted'), context(false, AbortSignal.abort())).kind).toBe('timeout');
});
