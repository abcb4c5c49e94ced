/**
 * The object map of an image, an object of the cluster: two bits say of each data object whether it exists. Reading it is one
 * request, 64 KiB for a TiB; librbd would call us back for every object.
 *
 *   u32 length of the header; header: u8 version, u8 oldest reader, u32 length, u64 number of objects; then the bits; a footer
 */
const LENGTH_BYTES = 4;
const COUNT_AT = 6;
const OBJECTS_A_BYTE = 4;

/** Non-zero pairs of bits in each byte. */
const PAIRS = Uint8Array.from(
  { length: 256 },
  (_, byte) => [0, 2, 4, 6].filter(shift => ((byte >> shift) & 0b11) !== 0).length,
);

/** Undefined when it cannot be understood. */
export function countObjects(map: Buffer): number | undefined {
  if (map.length < LENGTH_BYTES) return undefined;
  const header = map.readUInt32LE(0);
  if (header < COUNT_AT + 8 || map.length < LENGTH_BYTES + header) return undefined;
  const objects = Number(map.readBigUInt64LE(LENGTH_BYTES + COUNT_AT));
  const begin = LENGTH_BYTES + header;
  const bytes = Math.ceil(objects / OBJECTS_A_BYTE);
  if (map.length < begin + bytes) return undefined;
  let count = 0;
  for (let at = begin; at < begin + bytes; at++) count += PAIRS[map[at]!]!;
  return count;
}
