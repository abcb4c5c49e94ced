import type { StoreWords } from '#backends/s3/errors';
import type { ErrorKind } from '#platform/errors';

const HINTS: Partial<Record<ErrorKind, string>> = {
  unauthenticated: 'check the access key of this backend and the clocks',
  permission_denied: 'check the caps of this backend’s user: users=*;buckets=*;metadata=*',
};

export const RGW_WORDS: StoreWords = { hint: kind => HINTS[kind] };
