import { z } from 'zod';

export type Json = Record<string, unknown>;

/** JSON Schemas of an OpenAPI document: those with an id stand in it once, and are referred to. */
export class SchemaBook {
  private readonly named = new Map<string, Json>();

  /** @param io whether it is what callers send, where defaults may be left out, or what they get */
  of(schema: z.ZodType, io: 'input' | 'output'): Json {
    const { $schema: _, $defs, ...json } = z.toJSONSchema(schema, { io }) as Json & { $defs?: Record<string, Json> };
    for (const [name, definition] of Object.entries($defs ?? {})) this.add(name, relocated(definition));
    return relocated(json);
  }

  /** In the order of their names. */
  get all(): Record<string, Json> {
    return Object.fromEntries([...this.named].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  private add(name: string, definition: Json): void {
    const known = this.named.get(name);
    if (known && JSON.stringify(known) !== JSON.stringify(definition))
      throw new Error(
        `schema ${name} is not the same as what is sent and as what is answered: give one of them another id`,
      );
    this.named.set(name, definition);
  }
}

const relocated = (schema: Json): Json =>
  JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/$defs/', '"$ref":"#/components/schemas/'));
