/**
 * What may be written to a log. Redaction goes by the NAME of a field, at every depth, because a value does not tell
 * what it is; strings are searched besides for the shapes in which secrets travel (URL credentials, headers,
 * `name=value`, JSON). Errors are reduced to a list of known fields: drivers hang queries, parameters, whole requests
 * and rows on them.
 */
export const REDACTED = '[redacted]';

const MAX_DEPTH = 8;
const MAX_ITEMS = 100;
const MAX_STRING = 16_384;

/** Compared with a name in lower case without separators, so `secret_access_key` and `secretAccessKey` are one. */
const EXACT = new Set([
  'authorization',
  'proxyauthorization',
  'cookie',
  'setcookie',
  'credential',
  'credentials',
  'signature',
  'plaintext',
  'kek',
  'dek',
  'sas',
  'pwd',
  'pgpass',
]);
const ENDINGS = [
  'token',
  'tokens',
  'signature',
  'privatekey',
  'datakey',
  'wrappedkey',
  'apikey',
  'accountkey',
  'keymaterial',
];
const PARTS = ['secret', 'password', 'passwd', 'passphrase', 'connectionstring'];
/** Says where a secret is, not what it is. */
const HARMLESS_ENDINGS = ['file', 'path', 'variable'];

const cache = new Map<string, boolean>();

function decide(name: string): boolean {
  const plain = name.toLowerCase().replace(/[^a-z0-9]/g, '');
  if (HARMLESS_ENDINGS.some(ending => plain.endsWith(ending))) return false;
  return (
    EXACT.has(plain) ||
    plain.startsWith('chap') ||
    ENDINGS.some(ending => plain.endsWith(ending)) ||
    PARTS.some(part => plain.includes(part))
  );
}

/** Must a field of this name be hidden? */
export function isSensitiveName(name: string): boolean {
  let sensitive = cache.get(name);
  if (sensitive === undefined) {
    sensitive = decide(name);
    // Names can come from outside (map keys): the cache must not grow with them.
    if (cache.size < 2_000) cache.set(name, sensitive);
  }
  return sensitive;
}

const URL_CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/)[^\s/?#"'<>]*@/gi;
/** Passwords of these are often pasted with a bare slash; their paths hold no @. */
const DATABASE_URL = /((?:postgres(?:ql)?|rediss?):\/\/)[^\s"'<>]*@/gi;
const AUTH_SCHEME =
  /\b(Bearer|Basic|AWS4-HMAC-SHA256|AWS)\s+[A-Za-z0-9+/=._~:-]{6,}(?:,?\s*(?:Credential|SignedHeaders|Signature)=[^\s,]+)*/g;
const XML_ELEMENT = /<([A-Za-z][\w.-]*)>([^<]+)<\/\1>/g;
/** `name=value`, `"name": "value"` and `'name':'value'`; a bare `name: words` is prose and stays. */
const NAME_VALUE =
  /(["']?)([A-Za-z][\w.-]*)\1(\s*=\s*|(?<=["'])\s*:\s*)("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"'&,;)}\]]+)/g;

/** Hides secrets inside a text: URL credentials, authorization headers, named values. */
export function redactText(text: string): string {
  let out = text.length > MAX_STRING ? `${text.slice(0, MAX_STRING)}… (${text.length} characters)` : text;
  if (out.includes('@')) out = out.replace(DATABASE_URL, `$1${REDACTED}@`).replace(URL_CREDENTIALS, `$1${REDACTED}@`);
  if (out.includes('B') || out.includes('AWS')) out = out.replace(AUTH_SCHEME, `$1 ${REDACTED}`);
  if (out.includes('</')) {
    out = out.replace(XML_ELEMENT, (whole, name: string) =>
      isSensitiveName(name) ? `<${name}>${REDACTED}</${name}>` : whole,
    );
  }
  if (out.includes('=') || out.includes('":') || out.includes("':")) {
    out = out.replace(NAME_VALUE, (whole, quote: string, name: string, separator: string) =>
      isSensitiveName(name) ? `${quote}${name}${quote}${separator}${REDACTED}` : whole,
    );
  }
  return out;
}

/** Facts that a person needs and that never hold a row, a query parameter or a request. */
const ERROR_FIELDS = [
  'code',
  'errno',
  'syscall',
  'address',
  'port',
  'kind',
  'retry',
  'resource',
  'field',
  'operationId',
  'id',
  'status',
  'statusCode',
  'severity',
  'schema',
  'table',
  'column',
  'constraint',
] as const;

function redactError(error: Error, depth: number, seen: Set<object>): Record<string, unknown> {
  const out: Record<string, unknown> = {
    type: error.name || error.constructor.name,
    message: redactText(String(error.message)),
  };
  for (const name of ERROR_FIELDS) {
    const value = (error as unknown as Record<string, unknown>)[name];
    if (typeof value === 'string') out[name] = redactText(value);
    else if (typeof value === 'number' || typeof value === 'boolean') out[name] = value;
  }
  if (typeof error.stack === 'string') out.stack = redactText(error.stack);
  if (error.cause !== undefined) out.cause = walk(error.cause, depth + 1, seen);
  if (error instanceof AggregateError) out.errors = walk(error.errors, depth + 1, seen);
  return out;
}

function redactEntries(
  entries: Iterable<[unknown, unknown]>,
  depth: number,
  seen: Set<object>,
): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  let left = MAX_ITEMS;
  for (const [key, value] of entries) {
    if (left-- === 0) {
      out['…'] = 'more fields';
      break;
    }
    const name = String(key);
    out[redactText(name)] =
      isSensitiveName(name) && value !== undefined && value !== null ? REDACTED : walk(value, depth + 1, seen);
  }
  return out;
}

function walkObject(value: object, depth: number, seen: Set<object>): unknown {
  if (value instanceof Error) return redactError(value, depth, seen);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'invalid date' : value.toISOString();
  if (Array.isArray(value) || value instanceof Set) {
    const items = Array.isArray(value) ? value.slice(0, MAX_ITEMS) : [...value].slice(0, MAX_ITEMS);
    const total = Array.isArray(value) ? value.length : value.size;
    const out = items.map(item => walk(item, depth + 1, seen));
    if (total > MAX_ITEMS) out.push(`… ${total - MAX_ITEMS} more`);
    return out;
  }
  if (value instanceof Map) return redactEntries(value, depth, seen);
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === 'function') return walk(toJSON.call(value), depth + 1, seen);
  return redactEntries(Object.entries(value), depth, seen);
}

function walk(value: unknown, depth: number, seen: Set<object>): unknown {
  if (typeof value === 'string') return redactText(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'function' || typeof value === 'symbol') return undefined;
  if (typeof value !== 'object' || value === null) return value;
  if (seen.has(value)) return '[circular]';
  if (depth > MAX_DEPTH) return '[too deep]';
  seen.add(value);
  try {
    return walkObject(value, depth, seen);
  } catch {
    return '[unreadable]'; // a getter that throws must not take the log line with it
  } finally {
    seen.delete(value);
  }
}

/** A copy that may be logged: plain data, bounded in depth and width, without secrets. */
export function redact(value: unknown): unknown {
  return walk(value, 0, new Set());
}
