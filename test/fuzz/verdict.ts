import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { PROBLEMS, type ProblemCode } from '#admin/problems/problems';
import type { FuzzRequest } from '#test/fuzz/fuzz-request';
import type { OpenApiDocument, Operation } from '#test/fuzz/openapi-document';
import type { Schema } from '#test/fuzz/schema-arbitrary';
import type { FuzzAnswer } from '#test/fuzz/wire';

/** Words of a stack, of a driver or of Postgres: nothing that a caller is told. */
const INSIDES =
  /\.[jt]s:\d+|node_modules|\bat \w+ \(|SQLSTATE|pg_catalog|relation "|syntax error at|ECONN|\btrivet_(app|engine|owner)\b/;
const POINTER = /^\/(body|query|path|header)(\/|$)/;

/**
 * What is wrong with an answer, by the document alone. The checker of schemas is not the one that the API has: a body that
 * it rejects and the API accepts is a difference between what is promised and what is done.
 */
export class Judge {
  private readonly ajv = new Ajv2020({ strict: false, allErrors: false, validateFormats: true });
  private readonly known = new Map<Schema, ValidateFunction>();

  constructor(
    document: OpenApiDocument,
    /** What no reply may hold. */
    private readonly secrets: readonly string[],
  ) {
    addFormats.default(this.ajv, ['uuid', 'date-time']);
    // For people and their forms: nothing is refused by them.
    for (const format of ['uri', 'password']) this.ajv.addFormat(format, true);
    for (const [name, schema] of Object.entries(document.schemas))
      this.ajv.addSchema(schema as object, `#/components/schemas/${name}`);
  }

  /** Whether the schema accepts it; `why` of the last refusal is in `reason`. */
  accepts(schema: Schema, value: unknown): boolean {
    let validate = this.known.get(schema);
    if (!validate) {
      validate = this.ajv.compile(schema as object);
      this.known.set(schema, validate);
    }
    const valid = validate(value) as boolean;
    this.reason = valid ? '' : this.ajv.errorsText(validate.errors);
    return valid;
  }
  reason = '';

  findings(request: FuzzRequest, answer: FuzzAnswer): string[] {
    const { operation } = request;
    const { status, headers, text } = answer;
    const found: string[] = [];
    if (!(status in operation.responses)) found.push(`status ${status} is not documented`);
    if (status >= 500 && status !== 507) found.push(`status ${status}`);
    if (headers['x-content-type-options'] !== 'nosniff' || headers['cache-control'] !== 'no-store')
      found.push('security headers are missing');
    if (headers['x-powered-by'] !== undefined || headers.server !== undefined) found.push('it says what it is made of');
    for (const secret of this.secrets) if (text.includes(secret)) found.push('a secret is in the reply');
    if (status >= 300) return [...found, ...this.ofProblem(answer)];
    if (!this.isRequestValid(request)) found.push(`what the document forbids was accepted: ${this.reason}`);
    return [...found, ...this.ofSuccess(operation, answer)];
  }

  private ofProblem({ status, headers, text }: FuzzAnswer): string[] {
    if (!headers['content-type']?.startsWith('application/problem+json'))
      return [`a refusal (${status}) of type ${headers['content-type']}: ${text.slice(0, 200)}`];
    const problem = parsed(text) as Record<string, unknown> | undefined;
    if (typeof problem !== 'object' || problem === null) return ['a refusal that is no object'];
    const found: string[] = [];
    if (!this.accepts({ $ref: '#/components/schemas/Problem' }, problem))
      found.push(`a refusal of wrong form: ${this.reason}`);
    const code = problem.code as ProblemCode;
    if (PROBLEMS[code]?.status !== status || problem.status !== status || problem.title !== PROBLEMS[code]?.title)
      found.push(`status ${status} with ${code}, ${problem.status}, ${problem.title}`);
    if (problem.type !== `/docs/problems#${code}`) found.push(`type ${problem.type}`);
    if (!/^urn:uuid:[0-9a-f-]{36}$/.test(String(problem.instance))) found.push(`instance ${problem.instance}`);
    if (INSIDES.test(text)) found.push('the refusal tells of the insides');
    for (const { pointer } of (problem.errors as { pointer: string }[] | undefined) ?? [])
      if (!POINTER.test(pointer)) found.push(`pointer ${pointer}`);
    if (status === 401 && !headers['www-authenticate']) found.push('401 without www-authenticate');
    if (status === 429 && !headers['retry-after']) found.push('429 without retry-after');
    return found;
  }

  private ofSuccess({ responses }: Operation, { status, headers, text }: FuzzAnswer): string[] {
    const [type, content] = Object.entries(responses[status]?.content ?? {})[0] ?? [];
    if (type === undefined || content === undefined)
      return text === '' ? [] : [`a body where none is documented: ${text.slice(0, 200)}`];
    const schema = content['x-item-schema'] ?? content.schema;
    if (!headers['content-type']?.startsWith(type)) return [`type ${headers['content-type']} instead of ${type}`];
    if (type === 'text/event-stream') return [];
    const values = type === 'application/x-ndjson' ? text.split('\n').filter(Boolean).map(parsed) : [parsed(text)];
    return values
      .filter(value => !this.accepts(schema, value))
      .map(() => `a reply of wrong form: ${this.reason}`)
      .slice(0, 1);
  }

  private isRequestValid({ operation, payload, query, path }: FuzzRequest): boolean {
    const declared = operation.parameters.filter(({ in: where }) => where === 'query');
    for (const name of Object.keys(query))
      if (!declared.some(parameter => parameter.name === name)) return this.refused(`query ${name}`);
    for (const { name, in: where, schema, required } of operation.parameters) {
      if (where !== 'query' && where !== 'path') continue;
      const sent = where === 'query' ? query[name] : path[name];
      if (
        sent === undefined
          ? required
          : ![sent].flat().every(one => this.acceptsText(schema, one)) || Array.isArray(sent)
      )
        return this.refused(`${where} ${name}: ${this.reason}`);
    }
    // Of a GET nobody reads one (RFC 9110, 9.3.1).
    if (operation.method === 'GET') return true;
    if (operation.body === undefined) return payload === undefined || payload === '' || this.refused('a body');
    if (payload === undefined || payload === '') return !operation.bodyRequired || this.refused('no body');
    let value: unknown;
    try {
      value = JSON.parse(payload);
    } catch {
      return this.refused('a body that is no JSON');
    }
    return this.accepts(operation.body, value);
  }

  /** Parameters are text; what is a number is written as one. */
  private acceptsText(schema: Schema, text: string): boolean {
    if (this.accepts(schema, text)) return true;
    return /^-?\d+$/.test(text) && this.accepts(schema, Number(text));
  }

  private refused(reason: string): false {
    this.reason = reason;
    return false;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
