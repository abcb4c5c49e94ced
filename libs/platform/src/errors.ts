/**
 * The one closed union of errors. Whoever knows the cause decides whether a repeat can help; nobody downstream guesses
 * from a message. Each protocol library maps the kinds to its codes in one exhaustive table.
 */
export const ERROR_KINDS = [
  'invalid_argument', // the request can never succeed as it is; `field` names what is wrong
  'not_found',
  'already_exists', // same name, other desired state; or a foreign object under that name
  'failed_precondition', // the state of the object forbids it (not empty, locked, needs a person)
  'aborted', // busy with another operation; the same call again will do
  'resource_exhausted', // quota, policy size, capacity
  'out_of_range', // COSI only: one credential cannot cover several buckets
  'permission_denied', // the backend knows us and refuses
  'unauthenticated', // the backend does not accept our credentials
  'unavailable', // the backend, or a part of ours, cannot be reached
  'timeout', // no answer within the bound: the effect is unknown until probed
  'unimplemented',
  'internal', // a defect; carries an id to quote
] as const;
export type ErrorKind = (typeof ERROR_KINDS)[number];

/** never: the same call fails again. later: retried by the engine with back-off. person: parked as needs_attention. */
export type Retry = 'never' | 'later' | 'person';

const DEFAULT_RETRY = {
  invalid_argument: 'never',
  not_found: 'never',
  already_exists: 'never',
  failed_precondition: 'never',
  aborted: 'later',
  resource_exhausted: 'never',
  out_of_range: 'never',
  permission_denied: 'later',
  unauthenticated: 'later',
  unavailable: 'later',
  timeout: 'later',
  unimplemented: 'never',
  internal: 'later',
} satisfies Record<ErrorKind, Retry>;

export interface StorageErrorOptions {
  retry?: Retry;
  /** What it happened to, e.g. `bucket photos`. */
  resource?: string;
  /** The request field at fault, as the domain calls it; a protocol library tells it by its own name. */
  field?: string;
  /** Which operation the caller waited for. */
  operation?: OperationInQuestion;
  cause?: unknown;
}

export interface OperationInQuestion {
  id: string;
  /** It is not at its end: only the caller's wait is. */
  goesOn: boolean;
}

export class StorageError extends Error {
  readonly kind: ErrorKind;
  readonly retry: Retry;
  readonly resource: string | undefined;
  readonly field: string | undefined;
  readonly operation: OperationInQuestion | undefined;

  constructor(kind: ErrorKind, message: string, options: StorageErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'StorageError';
    this.kind = kind;
    this.retry = options.retry ?? DEFAULT_RETRY[kind];
    this.resource = options.resource;
    this.field = options.field;
    this.operation = options.operation;
  }

  /** The same error, about this operation. */
  of(operation: OperationInQuestion): StorageError {
    return new StorageError(this.kind, this.message, { ...this, cause: this.cause, operation });
  }

  /** What an operation row keeps of an error: no cause, no stack. */
  toJSON(): StoredError {
    return { kind: this.kind, message: this.message, retry: this.retry, resource: this.resource, field: this.field };
  }

  static fromJSON(stored: StoredError): StorageError {
    return new StorageError(stored.kind, stored.message, stored);
  }
}

/** A host has seen a higher fence for this resource: of a successor, or from before the database was restored. */
export class HostFenceOvertaken extends StorageError {
  constructor(
    resource: string,
    own: string,
    readonly by: string,
  ) {
    super('aborted', `${resource}: fence ${own} was overtaken by ${by}`, { resource });
  }
}

const POOL = 'pool ';

/** Errors about one pool say nothing about the others of its backend. */
export const aboutPool = (pool: string): { resource: string } => ({ resource: `${POOL}${pool}` });

/** The pool that has not answered, of an error that says so; undefined when it is about a whole backend. */
export function silentPoolOf({ kind, resource }: Pick<StoredError, 'kind' | 'resource'>): string | undefined {
  const isSilence = kind === 'unavailable' || kind === 'timeout';
  return isSilence && resource?.startsWith(POOL) ? resource.slice(POOL.length) : undefined;
}

export interface StoredError {
  kind: ErrorKind;
  message: string;
  retry: Retry;
  resource?: string;
  field?: string;
}

export const isStorageError = (error: unknown): error is StorageError => error instanceof StorageError;

/** A request field that can never be right. */
export const invalid = (field: string, message: string): StorageError =>
  new StorageError('invalid_argument', `${field}: ${message}`, { field });
