import { describe, expect, it } from 'vitest';
import { StorageError } from '#platform/errors';

describe('StorageError', () => {
  it('keeps kind, message and retry through an operation row, and drops the cause', () => {
    const error = new StorageError('unavailable', 'RGW does not answer', {
      resource: 'bucket a',
      cause: new Error('x'),
    });
    const stored = JSON.parse(JSON.stringify(error));
    expect(StorageError.fromJSON(stored)).toMatchObject({ kind: 'unavailable', retry: 'later', resource: 'bucket a' });
    expect(JSON.stringify(stored)).not.toContain('cause');
  });
});
