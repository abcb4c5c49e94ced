/** CRC-32C (Castagnoli), reflected polynomial 0x82f63b78, as in RFC 3720 appendix B.4; eight bytes a turn. */
const TABLES = makeTables();

function makeTables(): Uint32Array[] {
  const tables = Array.from({ length: 8 }, () => new Uint32Array(256));
  for (let n = 0; n < 256; n++) {
    let crc = n;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
    tables[0]![n] = crc;
  }
  for (let n = 0; n < 256; n++)
    for (let slice = 1; slice < 8; slice++) {
      const before = tables[slice - 1]![n]!;
      tables[slice]![n] = (before >>> 8) ^ tables[0]![before & 0xff]!;
    }
  return tables;
}

const [T0, T1, T2, T3, T4, T5, T6, T7] = TABLES as [
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
];

/** @returns unsigned 32 bits */
export function crc32c(data: Uint8Array, start = 0, end = data.length): number {
  let crc = 0xffffffff;
  let at = start;
  for (; at + 8 <= end; at += 8) {
    crc ^= data[at]! | (data[at + 1]! << 8) | (data[at + 2]! << 16) | (data[at + 3]! << 24);
    crc =
      T7[crc & 0xff]! ^
      T6[(crc >>> 8) & 0xff]! ^
      T5[(crc >>> 16) & 0xff]! ^
      T4[crc >>> 24]! ^
      T3[data[at + 4]!]! ^
      T2[data[at + 5]!]! ^
      T1[data[at + 6]!]! ^
      T0[data[at + 7]!]!;
  }
  for (; at < end; at++) crc = (crc >>> 8) ^ T0[(crc ^ data[at]!) & 0xff]!;
  return (crc ^ 0xffffffff) >>> 0;
}
