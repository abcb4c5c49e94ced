import fc from 'fast-check';

/** JSON Schema 2020-12, as far as the generated document uses it; anything else in it is an error of this generator. */
export type Schema = boolean | SchemaObject;
export interface SchemaObject {
  $ref?: string;
  type?: string | readonly string[];
  enum?: readonly unknown[];
  const?: unknown;
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  allOf?: readonly Schema[];
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  additionalProperties?: Schema;
  propertyNames?: Schema;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  default?: unknown;
  examples?: readonly unknown[];
}

const KNOWN = new Set(
  `$ref type enum const anyOf oneOf allOf properties required additionalProperties propertyNames items minItems maxItems
   minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum default
   description title examples writeOnly readOnly deprecated $id id`.split(/\s+/),
);

/** Texts that have broken something somewhere. */
export const MOST_MISSES = 10_000;

const NASTY_TEXTS = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'x\udfffy',
  '\u{1f600}',
  'e\u0301',
  '\u202egnp',
  '\ufeff',
  '\r\nset-cookie: x=y',
  "'; DROP TABLE trivet.tenant; --",
  '%',
  '%00',
  '%_%',
  '\\',
  '../../../etc/passwd',
  '__proto__',
  'constructor',
  'null',
  'true',
  'NaN',
  '-1',
  '0x10',
  '1e3',
  '1.5',
  '00000000000000000001',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '9999999999999999999',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999999999Z',
  '2026-02-30T00:00:00Z',
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  'x'.repeat(254),
  'x'.repeat(5_000),
] as const;

export const nastyText = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...NASTY_TEXTS) },
  fc.string({ unit: 'binary', maxLength: 40 }),
);

/** Whatever JSON can say. */
export const anyJson: fc.Arbitrary<unknown> = fc.oneof(
  nastyText,
  fc.constantFrom(null, true, false, 0, -0, -1, 1.5, 2 ** 31, 2 ** 53, -(2 ** 63), 1e308, Number.MIN_VALUE),
  fc.constantFrom([], {}, [[]], [null], { '': '' }, { a: { b: { c: {} } } }, deep(200)),
  fc.jsonValue({ maxDepth: 2 }),
);

function deep(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

/** Makes values of schemas. `words` are things that exist, so that calls reach more than the lookup of nothing. */
export class SchemaArbitrary {
  constructor(
    private readonly components: Readonly<Record<string, Schema>>,
    private readonly words: readonly string[],
    /** What there is by the name of the parameter or member that says it. */
    private readonly named: Readonly<Record<string, readonly string[]>>,
  ) {}

  /** Of a parameter or member: often one of the things that its name stands for. */
  member(name: string, schema: Schema, depth = 0): fc.Arbitrary<unknown> {
    const known = this.named[name] ?? [];
    const any = this.valid(schema, depth);
    return known.length === 0
      ? any
      : fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...known) }, { weight: 1, arbitrary: any });
  }

  /** Values that the schema accepts, mostly: `pattern` and lengths together are filtered, formats are taken at their word. */
  valid(schema: Schema, depth = 0): fc.Arbitrary<unknown> {
    if (typeof schema === 'boolean' || Object.keys(schema).length === 0) return depth > 3 ? fc.constant(null) : anyJson;
    for (const key of Object.keys(schema))
      if (!KNOWN.has(key)) throw new Error(`the generator does not know the keyword ${key}: ${JSON.stringify(schema)}`);
    if (schema.$ref !== undefined) return this.valid(this.resolve(schema.$ref), depth);
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum) return fc.constantFrom(...schema.enum);
    const choices = schema.anyOf ?? schema.oneOf;
    if (choices) return fc.oneof(...choices.map(choice => this.valid(choice, depth)));
    if (schema.allOf) return this.valid(Object.assign({}, ...schema.allOf.map(part => this.plain(part))), depth);
    const types = [schema.type ?? 'unknown'].flat();
    return fc.oneof(...types.map(type => this.ofType(type, schema, depth)));
  }

  private plain(schema: Schema): SchemaObject {
    if (typeof schema === 'boolean') return {};
    return schema.$ref === undefined ? schema : this.plain(this.resolve(schema.$ref));
  }

  private resolve(ref: string): Schema {
    const name = ref.replace(/^#\/components\/schemas\//, '');
    const found = this.components[name];
    if (found === undefined) throw new Error(`the document has no ${ref}`);
    return found;
  }

  private ofType(type: string, schema: SchemaObject, depth: number): fc.Arbitrary<unknown> {
    switch (type) {
      case 'string':
        return this.text(schema);
      case 'integer':
        return fc.integer(boundsOf(schema));
      case 'number': {
        const { min, max } = boundsOf(schema);
        return fc.double({ min, max, noNaN: true });
      }
      case 'boolean':
        return fc.boolean();
      case 'null':
        return fc.constant(null);
      case 'array':
        return fc.array(this.valid(schema.items ?? true, depth + 1), {
          minLength: schema.minItems ?? 0,
          maxLength: Math.min(schema.maxItems ?? 4, (schema.minItems ?? 0) + 4),
        });
      case 'object':
        return this.object(schema, depth);
      default:
        return anyJson;
    }
  }

  private object(schema: SchemaObject, depth: number): fc.Arbitrary<unknown> {
    const { properties = {}, required = [], additionalProperties = true } = schema;
    const model = Object.fromEntries(
      Object.entries(properties).map(([key, value]) => [key, this.member(key, value, depth + 1)]),
    );
    const named = fc.record(model, { requiredKeys: required.filter(key => key in model) });
    if (additionalProperties === false || Object.keys(properties).length > 0) return named;
    const keys = this.valid(schema.propertyNames ?? { type: 'string' }, depth + 1) as fc.Arbitrary<string>;
    return fc.dictionary(keys, this.valid(additionalProperties, depth + 1), { maxKeys: 3, noNullPrototype: true });
  }

  private text({ minLength = 0, maxLength, format, pattern, examples = [] }: SchemaObject): fc.Arbitrary<string> {
    const wanted = pattern === undefined ? undefined : new RegExp(pattern, 'u');
    // A pattern may say its length itself.
    const longest = maxLength ?? (wanted ? Number.POSITIVE_INFINITY : minLength + 60);
    const fits = (text: string): boolean =>
      text.length >= minLength && text.length <= longest && (wanted?.test(text) ?? true);
    const words = this.words.filter(fits);
    const known = words.length > 0 ? [{ weight: 4, arbitrary: fc.constantFrom(...words) }] : [];
    if (format === 'uuid') return fc.oneof(...known, fc.uuid());
    if (format === 'date-time')
      return fc.oneof(
        fc
          .date({ min: new Date('0000-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
          .map(date => date.toISOString()),
        fc.constantFrom('2026-01-01T00:00:00+14:00', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59.999-12:00'),
      );
    const nasty = NASTY_TEXTS.filter(fits);
    const odd = nasty.length > 0 ? [{ weight: 1, arbitrary: fc.constantFrom(...nasty) }] : [];
    const made = wanted
      ? fc.stringMatching(new RegExp(pattern!)).filter(bounded(fits, `${pattern}, ${minLength} to ${longest} letters`))
      : fc.string({ unit: 'grapheme', minLength, maxLength: Math.min(longest, minLength + 60) }).filter(fits);
    const shown = examples.length > 0 ? [{ weight: 4, arbitrary: fc.constantFrom(...(examples as string[])) }] : [];
    return fc.oneof(...shown, ...known, ...odd, { weight: 2, arbitrary: made });
  }
}

/** fast-check goes on for ever where nothing fits. */
function bounded(fits: (text: string) => boolean, wanted: string): (text: string) => boolean {
  let misses = 0;
  return text => {
    if (fits(text)) misses = 0;
    else if (++misses > MOST_MISSES) throw new Error(`nothing that is made fits ${wanted}`);
    return misses === 0;
  };
}

function boundsOf({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: SchemaObject): {
  min: number;
  max: number;
} {
  const min = Math.max(
    minimum ?? Number.NEGATIVE_INFINITY,
    exclusiveMinimum === undefined ? -Infinity : exclusiveMinimum + 1,
  );
  const max = Math.min(
    maximum ?? Number.POSITIVE_INFINITY,
    exclusiveMaximum === undefined ? Infinity : exclusiveMaximum - 1,
  );
  return { min: Math.max(min, -(2 ** 31)), max: Math.min(max, 2 ** 31 - 1) };
}
