import type { Json } from '#admin/openapi/schema-book';
import { escaped, inline } from '#admin/problems/html-text';

export interface Schema extends Json {
  $ref?: string;
  type?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: readonly string[];
  items?: Schema;
  additionalProperties?: Schema | boolean;
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  enum?: readonly unknown[];
  const?: unknown;
  default?: unknown;
  examples?: readonly unknown[];
}

const code = (value: unknown): string =>
  `<code>${escaped(typeof value === 'string' ? value : JSON.stringify(value))}</code>`;

/** What it may be, in a few words; forms with a name lead to it. */
export function typeOf(schema: Schema): string {
  const { $ref, type, items, additionalProperties: any } = schema;
  if ($ref) {
    const name = $ref.split('/').at(-1)!;
    return `<a href="#schema-${name}">${name}</a>`;
  }
  if (schema.const !== undefined) return code(schema.const);
  if (schema.enum) return schema.enum.map(code).join(', ');
  const some = schema.anyOf ?? schema.oneOf;
  if (some) return [...new Set(some.map(typeOf))].join(' or ');
  if (type === 'array') return `array of ${items ? typeOf(items) : 'anything'}`;
  if (type === 'object' && typeof any === 'object' && Object.keys(any).length > 0) return `object of ${typeOf(any)}`;
  return type ?? 'anything';
}

/** Bounds that a client can look at before it sends. */
const BOUNDS: Readonly<Record<string, string>> = {
  format: 'format',
  pattern: 'matches',
  minLength: 'letters from',
  maxLength: 'letters to',
  minimum: 'from',
  maximum: 'to',
  exclusiveMinimum: 'above',
  minItems: 'items from',
  maxItems: 'items to',
  default: 'default',
};

function boundsOf(schema: Schema): string {
  const said = Object.entries(BOUNDS).flatMap(([key, words]) => {
    const value = schema[key];
    // What JavaScript holds exactly is no bound of ours.
    const isNone = value === undefined || value === '' || Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER;
    return isNone ? [] : [`${words} ${code(value)}`];
  });
  const example = schema.examples?.[0];
  if (example !== undefined) said.push(`for example ${code(example)}`);
  if (schema.readOnly) said.push('read only');
  if (schema.writeOnly) said.push('write only');
  return said.join('; ');
}

/** What is said of it beside its type. */
export const wordsOf = (schema: Schema): string =>
  [schema.description && inline(schema.description), boundsOf(schema)].filter(Boolean).join('. ');

interface Row {
  name: string;
  schema: Schema;
  isNeeded: boolean;
}

/** Fields of objects that stand within it have the names of both: `capacity.total`, `pools[].name`. */
function* rowsOf(schema: Schema, above = ''): Generator<Row> {
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const called = above + name;
    yield { name: called, schema: field, isNeeded: schema.required?.includes(name) ?? false };
    yield* below(field, called);
  }
}

function* below(schema: Schema, called: string): Generator<Row> {
  if (schema.type === 'array' && schema.items) yield* below(schema.items, `${called}[]`);
  else if (schema.type === 'object') yield* rowsOf(schema, `${called}.`);
  else for (const one of schema.anyOf ?? schema.oneOf ?? []) if (!one.$ref) yield* below(one, called);
}

/** The fields of a form; of one that has several shapes those of each. */
export function fieldsHtml(schema: Schema): string {
  const shapes = schema.anyOf ?? schema.oneOf;
  if (shapes && !schema.properties)
    return shapes.map((shape, at) => `<p>${at === 0 ? 'Either' : 'or'}</p>${fieldsHtml(shape)}`).join('\n');
  const rows = [...rowsOf(schema)];
  if (rows.length === 0) return `<p>${typeOf(schema)}${schema.$ref ? '' : `. ${wordsOf(schema)}`}</p>`;
  return tableOf(['Field', 'Type', 'What it is'], rows.map(rowHtml));
}

const rowHtml = ({ name, schema, isNeeded }: Row): string[] => [
  `<code>${escaped(name)}</code>${isNeeded ? '' : ' <small>optional</small>'}`,
  typeOf(schema),
  wordsOf(schema),
];

export const tableOf = (heads: readonly string[], rows: readonly (readonly string[])[]): string =>
  `<div class="wide"><table><thead><tr>${heads.map(head => `<th scope="col">${head}</th>`).join('')}</tr></thead>
<tbody>${rows.map(row => `<tr>${row.map(cell => `<td>${cell}</td>`).join('')}</tr>`).join('\n')}</tbody></table></div>`;
