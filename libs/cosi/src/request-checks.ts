import { invalid } from '#platform/errors';

/**
 * Rules of the protocol for single fields; what a name or a parameter means is the domain's business.
 * Sizes are bytes of UTF-8: 4 KiB a map by the specification, 253 and 2048 by the text of the fields.
 */
export const MAX_NAME = 253;
export const MAX_ID = 2048;
export const MAX_MAP = 4096;
/** The custom resource of v1alpha2 allows no more in one access. */
export const MAX_BUCKETS = 128;
/** Sidecars send each protocol once; the list is only bounded. */
export const MAX_PROTOCOLS = 16;

/** DNS subdomain, RFC 1123: what the specification promises for names. */
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const V1ALPHA2_ID = /^[a-zA-Z0-9/._-]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f]/;

/** A name that COSI made up: `name`, `account_name`. */
export function checkName(field: string, value: string): void {
  checkPresent(field, value);
  checkSize(field, value, MAX_NAME);
  if (!DNS_SUBDOMAIN.test(value)) {
    throw invalid(
      field,
      "must be lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit",
    );
  }
}

/** An id that may not be ours, nor of our shape: v1alpha1, and everything that takes away. */
export function checkId(field: string, value: string): void {
  checkPresent(field, value);
  checkSize(field, value, MAX_ID);
  checkText(field, value);
}

/** An id that v1alpha2 shall find: its characters are prescribed. */
export function checkV1alpha2Id(field: string, value: string): void {
  checkId(field, value);
  if (!V1ALPHA2_ID.test(value)) throw invalid(field, "must consist of letters, digits, '/', '.', '_' and '-'");
}

export function checkMap(field: string, map: Readonly<Record<string, string>>): void {
  let size = 0;
  for (const [key, value] of Object.entries(map)) {
    size += Buffer.byteLength(key) + Buffer.byteLength(value);
    if (size > MAX_MAP) throw invalid(field, `must not exceed ${MAX_MAP} bytes of keys and values`);
    if (key === '') throw invalid(field, 'must not have an empty key');
    checkText(field, key);
    checkText(`${field}[${key}]`, value);
  }
}

export function checkCount(field: string, list: readonly unknown[], max: number): void {
  if (list.length > max) throw invalid(field, `must not have more than ${max} entries, got ${list.length}`);
}

function checkPresent(field: string, value: string): void {
  if (value === '') throw invalid(field, 'required, must not be empty');
}

export function checkSize(field: string, value: string, max: number): void {
  const size = Buffer.byteLength(value);
  if (size > max) throw invalid(field, `must not exceed ${max} bytes, got ${size}`);
}

function checkText(field: string, value: string): void {
  if (CONTROL.test(value)) throw invalid(field, 'must not contain control characters');
}
