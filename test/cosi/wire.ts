/** Protobuf by hand, so that field numbers are checked by something that has read no proto file. */
export const varint = (value: number): Buffer => {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) + 128);
  }
};
const VARINT = 0;
const BYTES = 2;

export const num = (field: number, value: number): Buffer => Buffer.concat([varint(field * 8 + VARINT), varint(value)]);
export const bytes = (field: number, content: Buffer | string): Buffer => {
  const body = Buffer.from(content as string);
  return Buffer.concat([varint(field * 8 + BYTES), varint(body.length), body]);
};
export const msg = (field: number, ...parts: Buffer[]): Buffer => bytes(field, Buffer.concat(parts));
/** One entry of a map<string, string>. */
export const entry = (field: number, key: string, value: string): Buffer => msg(field, bytes(1, key), bytes(2, value));

export type Parsed = Map<number, (number | Buffer)[]>;

/** Fields by number, in order. Knows varints and lengths, which is all that COSI has. */
export function parse(message: Buffer): Parsed {
  const fields: Parsed = new Map();
  let at = 0;
  const read = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = message[at++] as number;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = read();
    const number = read();
    const isBytes = tag % 8 === BYTES;
    const value = isBytes ? message.subarray(at, at + number) : number;
    if (isBytes) at += number;
    const field = Math.floor(tag / 8);
    fields.set(field, [...(fields.get(field) ?? []), value]);
  }
  return fields;
}

/** The one value at a path of field numbers; undefined when a message on the way is absent. */
export function at(message: Buffer, ...path: number[]): number | string | undefined {
  let current: Buffer = message;
  for (const [index, field] of path.entries()) {
    const value = parse(current).get(field)?.[0];
    if (value === undefined) return undefined;
    if (index === path.length - 1) return typeof value === 'number' ? value : value.toString();
    current = value as Buffer;
  }
  return undefined;
}
