import { isDeepStrictEqual } from 'node:util';
import { Environment } from '@marcbachmann/cel-js';

/** The part of OpenAPI v3 that CustomResourceDefinitions use, as an API server keeps it: pruning, defaults, checks, rules in CEL. */
export interface Schema {
  type?: 'object' | 'array' | 'string' | 'integer' | 'boolean';
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  default?: unknown;
  enum?: unknown[];
  pattern?: string;
  format?: string;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  'x-kubernetes-list-type'?: 'set' | 'map' | 'atomic';
  'x-kubernetes-list-map-keys'?: string[];
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  'x-kubernetes-validations'?: { rule: string; message?: string }[];
}

type Fields = Record<string, unknown>;
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What no property names goes; at the top apiVersion, kind and metadata stay. */
export function prune(value: unknown, schema: Schema, isTop = true): unknown {
  if (Array.isArray(value)) return schema.items ? value.map(item => prune(item, schema.items!, false)) : value;
  if (!isFields(value) || schema['x-kubernetes-preserve-unknown-fields'] || !schema.properties) return value;
  const kept = Object.entries(value).flatMap(([name, child]): [string, unknown][] => {
    if (isTop && ['apiVersion', 'kind', 'metadata'].includes(name)) return [[name, child]];
    const known = schema.properties![name];
    return known ? [[name, prune(child, known, false)]] : [];
  });
  return Object.fromEntries(kept);
}

export function withDefaults(value: unknown, schema: Schema): unknown {
  if (Array.isArray(value)) return schema.items ? value.map(item => withDefaults(item, schema.items!)) : value;
  if (!isFields(value)) return value;
  const filled: Fields = { ...value };
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    if (filled[name] === undefined && child.default !== undefined) filled[name] = structuredClone(child.default);
    if (filled[name] !== undefined) filled[name] = withDefaults(filled[name], child);
  }
  return filled;
}

const FORMATS: Record<string, (text: string) => boolean> = {
  // Nothing is none, though it is the base64 of no bytes.
  byte: text => /^(?!$)([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text),
  'date-time': text => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text) && isDay(text),
};

/** Of JavaScript the 31st of February is one in March. */
function isDay(text: string): boolean {
  const day = text.slice(0, 10);
  const at = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(day);
}

const ofType = (value: unknown): string =>
  Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value;

/** What is wrong with it, each with its path. `old`: what it was before, for rules about changes. */
export function problemsOf(value: unknown, schema: Schema, old?: unknown, path = ''): string[] {
  const at = path || '<root>';
  if (schema.type && ofType(value) !== schema.type) return [`${at}: must be of type ${schema.type}`];
  const problems: string[] = [];
  if (schema.enum && !schema.enum.includes(value)) problems.push(`${at}: must be one of ${schema.enum.join(', ')}`);
  if (typeof value === 'string') problems.push(...problemsOfText(value, schema, at));
  if (Array.isArray(value)) problems.push(...problemsOfList(value, schema, at));
  if (isFields(value)) {
    for (const name of schema.required ?? [])
      if (value[name] === undefined) problems.push(`${at}.${name}: Required value`);
    for (const [name, child] of Object.entries(schema.properties ?? {}))
      if (value[name] !== undefined)
        problems.push(...problemsOf(value[name], child, isFields(old) ? old[name] : undefined, `${path}.${name}`));
  }
  if (problems.length > 0) return problems;
  for (const { rule, message } of schema['x-kubernetes-validations'] ?? [])
    if (!holds(rule, value, old)) problems.push(`${at}: ${message ?? `failed rule: ${rule}`}`);
  return problems;
}

function problemsOfText(text: string, schema: Schema, at: string): string[] {
  const problems: string[] = [];
  const { length } = [...text];
  if (length < (schema.minLength ?? 0)) problems.push(`${at}: should be at least ${schema.minLength} chars long`);
  if (length > (schema.maxLength ?? Number.POSITIVE_INFINITY))
    problems.push(`${at}: Too long: may not be more than ${schema.maxLength} bytes`);
  if (schema.pattern && !new RegExp(schema.pattern).test(text))
    problems.push(`${at}: should match '${schema.pattern}'`);
  if (schema.format && FORMATS[schema.format]?.(text) === false)
    problems.push(`${at}: must be of format ${schema.format}`);
  return problems;
}

function problemsOfList(list: readonly unknown[], schema: Schema, at: string): string[] {
  const problems: string[] = [];
  if (list.length < (schema.minItems ?? 0)) problems.push(`${at}: should have at least ${schema.minItems} items`);
  if (list.length > (schema.maxItems ?? Number.POSITIVE_INFINITY))
    return [`${at}: Too many: ${list.length}: must have at most ${schema.maxItems} items`];
  for (const [index, item] of list.entries())
    if (schema.items) problems.push(...problemsOf(item, schema.items, undefined, `${at}[${index}]`));
  const keys = schema['x-kubernetes-list-map-keys'];
  const keyOf = (item: unknown) => (keys && isFields(item) ? keys.map(key => item[key]) : item);
  const isUnique = schema['x-kubernetes-list-type'] === 'set' || schema['x-kubernetes-list-type'] === 'map';
  const seen = new Set<string>();
  for (const [index, item] of isUnique ? list.entries() : []) {
    const key = JSON.stringify(keyOf(item));
    if (seen.has(key)) problems.push(`${at}[${index}]: Duplicate value`);
    seen.add(key);
  }
  return problems;
}

const rules = new Environment({ unlistedVariablesAreDyn: true });

/** One about a change holds where there was nothing before. */
function holds(rule: string, self: unknown, oldSelf: unknown): boolean {
  if (/\boldSelf\b/.test(rule) && oldSelf === undefined) return true;
  // The library compares maps by identity.
  if (rule === 'self == oldSelf') return isDeepStrictEqual(self, oldSelf);
  return rules.evaluate(rule, { self, oldSelf }) === true;
}
