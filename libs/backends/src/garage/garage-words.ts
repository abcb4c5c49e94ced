import type { StoreWords } from '#backends/s3/errors';
import type { ErrorKind } from '#platform/errors';

const HINTS: Partial<Record<ErrorKind, string>> = {
  unauthenticated: 'check the admin token and the key of this backend, and the clocks',
  permission_denied: 'check the scope of the admin token, and that the key of this backend owns the bucket',
  resource_exhausted: 'delete keys that nobody uses',
};

export const GARAGE_WORDS: StoreWords = {
  codes: { InvalidAdminToken: 'unauthenticated', TooManyKeys: 'resource_exhausted', Forbidden: 'permission_denied' },
  hint: kind => HINTS[kind],
};
