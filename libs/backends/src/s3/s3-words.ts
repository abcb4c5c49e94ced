import type { StoreWords } from '#backends/s3/errors';
import { hintOf } from '#backends/s3/needed-rights';
import type { ErrorKind } from '#platform/errors';

/** What IAM and STS say beside S3. Who is told to come more slowly knows that the store is there: that is no failure of it. */
const CODES: Readonly<Record<string, ErrorKind>> = {
  InvalidClientTokenId: 'unauthenticated',
  UnrecognizedClientException: 'unauthenticated',
  InvalidToken: 'unauthenticated',
  ExpiredToken: 'unauthenticated',
  ExpiredTokenException: 'unauthenticated',
  RequestExpired: 'unauthenticated',
  SignatureDoesNotMatch: 'unauthenticated',
  CredentialsProviderError: 'unauthenticated',
  Throttling: 'aborted',
  ThrottlingException: 'aborted',
  RequestLimitExceeded: 'aborted',
  SlowDown: 'aborted',
  EntityTemporarilyUnmodifiable: 'aborted',
  ConcurrentModification: 'aborted',
  LimitExceeded: 'resource_exhausted',
  NoSuchEntity: 'not_found',
  EntityAlreadyExists: 'already_exists',
  AuthorizationHeaderMalformed: 'failed_precondition',
  PermanentRedirect: 'failed_precondition',
  IllegalLocationConstraintException: 'invalid_argument',
  InvalidBucketName: 'invalid_argument',
};

const HINTS: Readonly<Record<string, string>> = {
  RequestTimeTooSkewed: 'its clock and ours differ by more than 15 minutes: set ours by NTP',
  RequestExpired: 'its clock and ours differ by more than 15 minutes: set ours by NTP',
  ExpiredToken: 'the session of the role or of the process is over and was not renewed',
  PermanentRedirect: 'the bucket is in another region than this backend',
  AuthorizationHeaderMalformed: 'the bucket is in another region than this backend',
  LimitExceeded: 'a limit of the account: users, keys of a user, or 2,048 characters of its policies',
};

/** As IAM says which right is missing; S3 often does not. */
export const SAID = /perform: "?([a-z0-9]+:[A-Za-z]+)/;

export const S3_WORDS: StoreWords = {
  codes: CODES,
  hint(kind, code, error) {
    if (HINTS[code] !== undefined) return HINTS[code];
    if (kind === 'aborted') return 'it asks to come more slowly';
    if (kind === 'unauthenticated') return 'check the keys of this backend, the role and the clocks';
    return kind === 'permission_denied' ? hintOf(error, SAID) : undefined;
  },
};
