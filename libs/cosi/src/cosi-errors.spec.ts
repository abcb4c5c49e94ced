import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { GRPC_CODES, toCosiStatus } from '#cosi/cosi-errors';
import { ERROR_KINDS, StorageError } from '#platform/errors';

/** Codes on which a v1alpha2 sidecar gives up for good. */
const TERMINAL = [status.INVALID_ARGUMENT, status.ALREADY_EXISTS, status.UNIMPLEMENTED, status.OUT_OF_RANGE];

describe('COSI errors', () => {
  it('nothing that a repeat may cure gets a code that ends repeats', () => {
    const curable = ERROR_KINDS.filter(kind => new StorageError(kind, 'x').retry === 'later');
    expect(curable).toContain('unavailable');
    for (const kind of curable) expect(TERMINAL).not.toContain(GRPC_CODES[kind]);
  });

  it('only INTERNAL has an id, and each has another', () => {
    expect(toCosiStatus(new StorageError('not_found', 'no bucket'))).toEqual({
      code: status.NOT_FOUND,
      message: 'no bucket',
    });
    const [one, two] = [toCosiStatus(new Error('secret')), toCosiStatus('thrown text')];
    expect(one).toMatchObject({ code: status.INTERNAL, message: `internal error, quote ${one.errorId}` });
    expect(two.errorId).not.toBe(one.errorId);
    const known = toCosiStatus(new StorageError('internal', 'row lost'));
    expect(known.message).toBe(`row lost (quote ${known.errorId})`);
  });

  it('a message is never empty, and always text that can be sent', () => {
    expect(toCosiStatus(new StorageError('aborted', '')).message).toBe('aborted');
    const cut = toCosiStatus(new StorageError('aborted', `${'a'.repeat(1022)}\u{1f512}${'b'.repeat(50)}`)).message;
    expect(cut).toHaveLength(1024);
    expect(cut.isWellFormed()).toBe(true);
    expect(toCosiStatus(new StorageError('aborted', 'half \ud83d')).message.isWellFormed()).toBe(true);
  });
});
