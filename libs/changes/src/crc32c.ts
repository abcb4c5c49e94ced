/**
 * CRC-32C (Castagnoli), reflected polynomial 0x82f63b78, as in RFC 3720 appendix B.4. Sixteen bytes a turn, by words: half
 * of the time of eight. Node's own, in zlib, is of another polynomial.
 */
const POLYNOMIAL = 0x82f63b78;
const SLICES = 16;

/** By how many bytes of a turn come after the one that is looked up. */
const TABLES = makeTables();

function makeTables(): Int32Array[] {
  const tables = Array.from({ length: SLICES }, () => new Int32Array(256));
  for (let n = 0; n < 256; n++) {
    let crc = n;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    tables[0]![n] = crc;
  }
  for (let n = 0; n < 256; n++)
    for (let slice = 1; slice < SLICES; slice++) {
      const before = tables[slice - 1]![n]!;
      tables[slice]![n] = (before >>> 8) ^ tables[0]![before & 0xff]!;
    }
  return tables;
}

/** Apart, so that V8 sees constants. */
const [T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14, T15] = TABLES as Tables;
type T = Int32Array;
type Tables = [T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T];

/** @returns unsigned 32 bits */
export function crc32c(data: Uint8Array, start = 0, end = data.length): number {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let crc = -1;
  let at = start;
  for (; at + SLICES <= end; at += SLICES) {
    const a = view.getInt32(at, true) ^ crc;
    const b = view.getInt32(at + 4, true);
    const c = view.getInt32(at + 8, true);
    const d = view.getInt32(at + 12, true);
    crc =
      T15[a & 0xff]! ^
      T14[(a >>> 8) & 0xff]! ^
      T13[(a >>> 16) & 0xff]! ^
      T12[a >>> 24]! ^
      T11[b & 0xff]! ^
      T10[(b >>> 8) & 0xff]! ^
      T9[(b >>> 16) & 0xff]! ^
      T8[b >>> 24]! ^
      T7[c & 0xff]! ^
      T6[(c >>> 8) & 0xff]! ^
      T5[(c >>> 16) & 0xff]! ^
      T4[c >>> 24]! ^
      T3[d & 0xff]! ^
      T2[(d >>> 8) & 0xff]! ^
      T1[(d >>> 16) & 0xff]! ^
      T0[d >>> 24]!;
  }
  for (; at < end; at++) crc = (crc >>> 8) ^ T0[(crc ^ data[at]!) & 0xff]!;
  return ~crc >>> 0;
}
