/** Protobuf by hand, exact over 64 bits, so that numbers are checked by something that has read no proto file. */
export type Value = string | bigint | number | Buffer;

export function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  for (let rest = BigInt.asUintN(64, value); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
}

/** Fields by number; a negative number is sent as protobuf sends an int32 or int64. */
export function message(fields: Record<number, Value>): Buffer {
  const parts = Object.entries(fields).map(([field, value]) => {
    const tag = BigInt(field) << 3n;
    if (typeof value === 'number' || typeof value === 'bigint')
      return Buffer.concat([varint(tag), varint(BigInt(value))]);
    const body = Buffer.from(value as string);
    return Buffer.concat([varint(tag | 2n), varint(BigInt(body.length)), body]);
  });
  return Buffer.concat(parts);
}

/** Varints and lengths by field number, in order. */
export function parse(bytes: Buffer): Map<number, (bigint | Buffer)[]> {
  const fields = new Map<number, (bigint | Buffer)[]>();
  let at = 0;
  const read = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++] as number;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = read();
    const number = read();
    let value: bigint | Buffer = number;
    if ((tag & 7n) === 2n) {
      value = bytes.subarray(at, at + Number(number));
      at += Number(number);
    }
    const field = Number(tag >> 3n);
    const values = fields.get(field);
    if (values) values.push(value);
    else fields.set(field, [value]);
  }
  return fields;
}

export interface Metadata {
  type: bigint;
  capacity: bigint;
  ranges: [bigint, bigint][];
}

const first = (fields: ReturnType<typeof parse>, field: number): bigint => (fields.get(field)?.[0] as bigint) ?? 0n;

/** A response of any service: all have the same numbers. */
export function metadataOf(bytes: Buffer): Metadata {
  const fields = parse(bytes);
  const ranges = (fields.get(3) ?? []).map((range): [bigint, bigint] => {
    const inner = parse(range as Buffer);
    return [first(inner, 1), first(inner, 2)];
  });
  return { type: first(fields, 1), capacity: first(fields, 2), ranges };
}
