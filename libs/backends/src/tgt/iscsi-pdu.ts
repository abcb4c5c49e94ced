/**
 * iSCSI protocol data units (RFC 7143, section 11), as far as a small initiator and a portal without disks need them: login, text, SCSI
 * commands with data both ways, NOP, logout. No digests, no additional header segments, error recovery level 0.
 *
 * A unit is a header of 48 bytes, and data padded to four. All numbers are big-endian.
 */
const HEADER_BYTES = 48;
export const NO_TAG = 0xffffffff;

export const Opcode = {
  nopOut: 0x00,
  command: 0x01,
  login: 0x03,
  text: 0x04,
  dataOut: 0x05,
  logout: 0x06,
  nopIn: 0x20,
  response: 0x21,
  loginResponse: 0x23,
  textResponse: 0x24,
  dataIn: 0x25,
  logoutResponse: 0x26,
  readyToTransfer: 0x31,
  async: 0x32,
  reject: 0x3f,
} as const;

/** Delivered ahead of the command sequence. */
export const IMMEDIATE = 0x40;
export const FINAL = 0x80;

export interface Pdu {
  header: Buffer;
  data: Buffer;
}

export const opcodeOf = (pdu: Pdu): number => pdu.header.readUInt8(0) & 0x3f;
export const flagsOf = (pdu: Pdu): number => pdu.header.readUInt8(1);
export const taskTagOf = (pdu: Pdu): number => pdu.header.readUInt32BE(16);

/** A header with what all kinds share; the rest is zero. */
export function makeHeader(opcode: number, flags: number, taskTag: number, dataBytes = 0): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt8(opcode, 0);
  header.writeUInt8(flags, 1);
  header.writeUIntBE(dataBytes, 5, 3);
  header.writeUInt32BE(taskTag, 16);
  return header;
}

/** Single-level unit number below 256, in the peripheral form. */
export function writeLun(header: Buffer, lun: number): void {
  header.writeUInt8(lun, 9);
}

export function encode(header: Buffer, data: Buffer = Buffer.alloc(0)): Buffer {
  const padding = (4 - (data.length % 4)) % 4;
  return Buffer.concat([header, data, Buffer.alloc(padding)]);
}

export const encodeKeys = (keys: Readonly<Record<string, string>>): Buffer => encodePairs(Object.entries(keys));

/** Of keys that may come more than once. */
export const encodePairs = (pairs: Iterable<readonly [string, string]>): Buffer =>
  Buffer.from([...pairs].map(([key, value]) => `${key}=${value}\0`).join(''));

export function decodeKeys(data: Buffer): Map<string, string> {
  const keys = new Map<string, string>();
  for (const pair of data.toString('utf8').split('\0')) {
    const at = pair.indexOf('=');
    if (at > 0) keys.set(pair.slice(0, at), pair.slice(at + 1));
  }
  return keys;
}

/** Cuts a byte stream into units. */
export class PduReader {
  #chunks: Buffer[] = [];
  #length = 0;

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }

  /** The next whole unit, or undefined until more bytes come. */
  next(): Pdu | undefined {
    if (this.#length < HEADER_BYTES) return undefined;
    const start = this.#peek(HEADER_BYTES);
    const aheadBytes = start.readUInt8(4) * 4;
    const dataBytes = start.readUIntBE(5, 3);
    const whole = HEADER_BYTES + aheadBytes + dataBytes + ((4 - (dataBytes % 4)) % 4);
    if (this.#length < whole) return undefined;
    const unit = this.#peek(whole);
    this.#drop(whole);
    const from = HEADER_BYTES + aheadBytes;
    return { header: unit.subarray(0, HEADER_BYTES), data: unit.subarray(from, from + dataBytes) };
  }

  #peek(bytes: number): Buffer {
    const first = this.#chunks[0] as Buffer;
    if (first.length < bytes) this.#chunks = [Buffer.concat(this.#chunks)];
    return (this.#chunks[0] as Buffer).subarray(0, bytes);
  }

  #drop(bytes: number): void {
    const rest = (this.#chunks[0] as Buffer).subarray(bytes);
    if (rest.length > 0) this.#chunks[0] = rest;
    else this.#chunks.shift();
    this.#length -= bytes;
  }
}
