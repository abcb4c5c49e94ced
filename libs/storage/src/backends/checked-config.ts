import '#platform/config/form-words';
import type { Registration } from '#backends/registry';
import { refusedUrl } from '#platform/config/address-rules';
import { StorageError } from '#platform/errors';

/** The form in which the registry keeps it. Throws `invalid_argument`, the field as a path into the request. */
export async function checkedConfig(registration: Registration, given: unknown): Promise<unknown> {
  const config = checked(registration.config, 'config', given);
  for (const [key, url] of Object.entries(registration.addresses(config))) {
    const reason = await refusedUrl(url);
    if (reason !== undefined) throw wrong(['config', key], reason);
  }
  return config;
}

/** What was given is in no message. */
export const checkedCredentials = (registration: Registration, given: Record<string, string>): Record<string, string> =>
  checked(registration.credentials, 'credentials', given);

function checked<T>(schema: { safeParse(value: unknown): Parsed<T> }, where: string, given: unknown): T {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const { path = [], message = 'wrong', keys = [] } = (issue ?? {}) as Issue;
  throw wrong([where, ...path.map(String), ...keys.slice(0, 1)], keys.length > 0 ? 'there is no such key' : message);
}

type Parsed<T> = { success: true; data: T } | { success: false; error: { issues: readonly unknown[] } };
interface Issue {
  path?: readonly PropertyKey[];
  message?: string;
  /** Of those that the schema does not know. */
  keys?: readonly string[];
}

const wrong = (path: readonly string[], message: string): StorageError => {
  const field = path.join('/');
  return new StorageError('invalid_argument', `${path.join('.')}: ${message}`, { field });
};
