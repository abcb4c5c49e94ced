import { isUtf8 } from 'node:buffer';
import type { MessageTypeDefinition, PackageDefinition } from '@grpc/proto-loader';

/**
 * What the decoder lets pass and a proto3 parser must refuse (protobuf encoding guide): a length that runs over the end
 * of its message, another wire type than the field's, text that is not UTF-8. protobufjs cuts, misreads or replaces
 * these, and a bucket name that lost its end is a different bucket.
 */
export type WireCheck = (bytes: Buffer) => string | undefined;

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

interface FieldRule {
  name: string;
  wire: number;
  text: boolean;
  message?: MessageRule;
}
type MessageRule = Map<number, FieldRule>;

/** The few properties of a descriptor that matter here. */
interface Descriptor {
  name: string;
  field: { name: string; number: number; type: string; typeName: string }[];
  nestedType: Descriptor[];
}

/** Compiles the check for a message of the package; done once per method. */
export function compileWireCheck(definitions: PackageDefinition, pkg: string, message: string): WireCheck {
  const topLevel = (name: string) => descriptorOf(definitions, `${pkg}.${name}`);
  const rule = messageRule(topLevel(message), topLevel);
  return bytes => new Walk(bytes).message(rule, bytes.length, '');
}

function descriptorOf(definitions: PackageDefinition, fullName: string): Descriptor {
  const definition = definitions[fullName] as MessageTypeDefinition<object, object> | undefined;
  if (!definition) throw new Error(`no message ${fullName}`);
  return definition.type as Descriptor;
}

function messageRule(descriptor: Descriptor, topLevel: (name: string) => Descriptor): MessageRule {
  const nested = new Map(descriptor.nestedType.map(type => [type.name, type]));
  return new Map(
    descriptor.field.map(({ name, number, type, typeName }): [number, FieldRule] => {
      switch (type) {
        case 'TYPE_STRING':
          return [number, { name, wire: BYTES, text: true }];
        case 'TYPE_ENUM':
          return [number, { name, wire: VARINT, text: false }];
        case 'TYPE_MESSAGE': {
          const child = nested.get(typeName) ?? topLevel(typeName);
          return [number, { name, wire: BYTES, text: false, message: messageRule(child, topLevel) }];
        }
        default:
          throw new Error(`no wire rule for ${type}`);
      }
    }),
  );
}

class Walk {
  private at = 0;

  constructor(private readonly bytes: Buffer) {}

  /** Reads up to `end`; returns what is wrong, naming the field by its path. */
  message(rule: MessageRule, end: number, path: string): string | undefined {
    while (this.at < end) {
      const tag = this.varint(end);
      if (tag === undefined || tag > 0xffff_ffff || tag < 8) return `${path || 'message'}: bad field tag`;
      const wire = tag % 8;
      const field = rule.get(Math.floor(tag / 8));
      if (field && field.wire !== wire) return `${path}${field.name}: wrong wire type ${wire}`;
      const fault = this.value(field, wire, end, path);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  private value(field: FieldRule | undefined, wire: number, end: number, path: string): string | undefined {
    const name = `${path}${field?.name ?? 'unknown field'}`;
    if (wire === VARINT) return this.varint(end) === undefined ? `${name}: bad number` : undefined;
    const length = wire === BYTES ? this.varint(end) : wire === FIXED64 ? 8 : wire === FIXED32 ? 4 : undefined;
    if (length === undefined) return `${name}: bad wire type or length`;
    const stop = this.at + length;
    if (stop > end) return `${name}: ends beyond its message`;
    if (field?.message) return this.message(field.message, stop, `${name}.`);
    if (field?.text && !isUtf8(this.bytes.subarray(this.at, stop))) return `${name}: not UTF-8`;
    this.at = stop;
    return undefined;
  }

  /** Loses precision beyond 2^53, which is far beyond any length or tag that passes. */
  private varint(end: number): number | undefined {
    let value = 0;
    let factor = 1;
    for (let count = 0; count < 10 && this.at < end; count++) {
      const byte = this.bytes[this.at++] as number;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
    return undefined;
  }
}
