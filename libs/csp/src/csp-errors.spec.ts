import { describe, expect, it } from 'vitest';
import { BadToken, CspRefusal, errorBody, HTTP_STATUSES, toRefusal, unexpectedArgument } from '#csp/csp-errors';
import { ERROR_KINDS, StorageError } from '#platform/errors';
import { LoginThrottled } from '#tenancy/logins/session-directory';

describe('CSP errors', () => {
  it('never say 401, which makes the driver log in without end', () => {
    for (const kind of ERROR_KINDS) {
      expect(HTTP_STATUSES[kind]).not.toBe(401);
      for (const busy of [409, 500, 503] as const)
        expect(toRefusal(new StorageError(kind, 'x'), busy).status).not.toBe(401);
    }
  });

  it('are 5xx, or say when to come again, where a repeat may help', () => {
    for (const kind of ERROR_KINDS.filter(value => new StorageError(value, 'x').retry === 'later')) {
      const { status, options } = toRefusal(new StorageError(kind, 'x'));
      expect(status >= 500 || options.retryAfter !== undefined || kind === 'permission_denied').toBe(true);
    }
  });

  it('have the code that the specification writes', () => {
    const codeOf = (status: number) => errorBody(new CspRefusal(status, 'm')).errors[0]?.code;
    expect([400, 404, 409].map(codeOf)).toEqual(['Bad Request', 'Not Found', 'Conflict']);
    expect(errorBody(unexpectedArgument('encrypted'))).toEqual({
      errors: [
        {
          code: 'Bad Request',
          message: "The request could not be understood by the server. Unexpected argument 'encrypted'.",
        },
      ],
    });
    expect(new BadToken()).toMatchObject({ status: 401, message: '' });
  });

  it('say once that there is no room', () => {
    const message = (text: string) => toRefusal(new StorageError('resource_exhausted', text)).message;
    expect(message('quota of 1 TiB')).toBe('quota of 1 TiB (insufficient storage space)');
    expect(message('insufficient storage space in pool a')).toBe('insufficient storage space in pool a');
  });

  it('begin a conflict about clones as the specification does, once', () => {
    const message = (text: string) =>
      toRefusal(new StorageError('failed_precondition', text, { field: 'clones' })).message;
    const whole = 'The request could not be completed due to a conflict. Snapshot a for volume b has a clone.';
    expect(message('Snapshot a for volume b has a clone.')).toBe(whole);
    expect(message(whole)).toBe(whole);
  });

  it('keep secrets of defects behind an id', () => {
    const [one, two] = [toRefusal(new Error('hunter2')), toRefusal('hunter2')];
    for (const { status, message, options } of [one, two])
      expect({ status, message }).toEqual({ status: 500, message: `internal error, quote ${options.errorId}` });
    expect(one.options.errorId).not.toBe(two.options.errorId);
    const known = toRefusal(new StorageError('internal', 'row lost'));
    expect(known.message).toBe(`row lost (quote ${known.options.errorId})`);
  });

  it('are those of the framework where it refused the client, and a defect where it failed', () => {
    const thrown = (statusCode: number) => Object.assign(new Error('framework'), { statusCode });
    expect(toRefusal(thrown(413))).toMatchObject({ status: 413, message: 'framework' });
    expect(toRefusal(thrown(500)).message).toMatch(/^internal error/);
    expect(toRefusal(Object.assign(new Error('x'), { status: '404' })).status).toBe(500);
  });

  it('of the throttle say when to come again', () => {
    expect(toRefusal(new LoginThrottled(30))).toMatchObject({ status: 429, options: { retryAfter: 30 } });
  });

  it('are never empty and never endless', () => {
    expect(toRefusal(new StorageError('aborted', '')).message).toBe('aborted');
    const { message } = toRefusal(new StorageError('not_found', `${'a'.repeat(2046)}\u{1f512}${'b'.repeat(50)}`));
    expect(message).toHaveLength(2048);
    expect(message.isWellFormed()).toBe(true);
  });
});
