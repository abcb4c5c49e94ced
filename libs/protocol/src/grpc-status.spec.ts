import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { ERROR_KINDS, StorageError } from '#platform/errors';
import { GRPC_CODES, grpcStatus } from '#protocol/grpc-status';

/** Codes on which a v1alpha2 sidecar gives up for good. */
const TERMINAL = [status.INVALID_ARGUMENT, status.ALREADY_EXISTS, status.UNIMPLEMENTED, status.OUT_OF_RANGE];

describe('errors as gRPC statuses', () => {
  it('nothing that a repeat may cure gets a code that ends repeats', () => {
    const curable = ERROR_KINDS.filter(kind => new StorageError(kind, 'x').retry === 'later');
    expect(curable).toContain('unavailable');
    for (const kind of curable) expect(TERMINAL).not.toContain(GRPC_CODES[kind]);
  });

  it('only INTERNAL has an id, and each has another', () => {
    expect(grpcStatus(new StorageError('not_found', 'no bucket'))).toEqual({
      code: status.NOT_FOUND,
      details: 'no bucket',
    });
    const [one, two] = [grpcStatus(new Error('secret')), grpcStatus('thrown text')];
    expect(one).toMatchObject({ code: status.INTERNAL, details: `internal error, quote ${one.errorId}` });
    expect(two.errorId).not.toBe(one.errorId);
    const known = grpcStatus(new StorageError('internal', 'row lost'));
    expect(known.details).toBe(`row lost (quote ${known.errorId})`);
  });

  it('a message is never empty, and always text that can be sent', () => {
    expect(grpcStatus(new StorageError('aborted', '')).details).toBe('aborted');
    const cut = grpcStatus(new StorageError('aborted', `${'a'.repeat(1022)}\u{1f512}${'b'.repeat(50)}`)).details;
    expect(cut).toHaveLength(1024);
    expect(cut.isWellFormed()).toBe(true);
    expect(grpcStatus(new StorageError('aborted', 'half \ud83d')).details.isWellFormed()).toBe(true);
  });
});
