import type { StoreWords } from '#backends/s3/errors';
import { hintOf } from '#backends/s3/needed-rights';
import type { ErrorKind } from '#platform/errors';

/** Who is told to come more slowly knows that the store is there: that is no failure of it. */
const CODES: Readonly<Record<string, ErrorKind>> = {
  NoGoogleCredentials: 'unauthenticated',
  authError: 'unauthenticated',
  UNAUTHENTICATED: 'unauthenticated',
  forbidden: 'permission_denied',
  PERMISSION_DENIED: 'permission_denied',
  notFound: 'not_found',
  NOT_FOUND: 'not_found',
  conflict: 'already_exists',
  ALREADY_EXISTS: 'already_exists',
  invalid: 'invalid_argument',
  INVALID_ARGUMENT: 'invalid_argument',
  LimitReached: 'resource_exhausted',
  /** A service account is known to all of Google some seconds after it was made. */
  MemberNotFound: 'aborted',
  rateLimitExceeded: 'aborted',
  userRateLimitExceeded: 'aborted',
  RESOURCE_EXHAUSTED: 'aborted',
  ABORTED: 'aborted',
  /** Somebody wrote it between our look and our change. */
  conditionNotMet: 'failed_precondition',
  SERVICE_DISABLED: 'failed_precondition',
  accessNotConfigured: 'failed_precondition',
  accountDisabled: 'failed_precondition',
};

const HINTS: Readonly<Record<string, string>> = {
  LimitReached: 'a limit of the project: 100 service accounts unless Google raised it, ten HMAC keys for each of them',
  MemberNotFound: 'the service account is not known everywhere yet',
  NoGoogleCredentials: 'no token: give this backend a key file, or the process credentials of its own',
  accessNotConfigured: 'an API is not enabled in the project',
  SERVICE_DISABLED: 'an API is not enabled in the project',
};

const SAID = /permission '?([a-z]+\.[A-Za-z]+\.[A-Za-z]+)/i;

export const GCS_WORDS: StoreWords = {
  codes: CODES,
  hint(kind, code, error) {
    if (HINTS[code] !== undefined) return HINTS[code];
    if (kind === 'aborted') return 'it asks to come more slowly';
    if (kind === 'unauthenticated') return 'check the key file of this backend, and the clocks';
    return kind === 'permission_denied' ? hintOf(error, SAID) : undefined;
  },
};
