import { createHash } from 'node:crypto';

export type ImageKind = 'volume' | 'snapshot';

export interface HeldImage {
  kind: ImageKind;
  /** Its id, after its folder. */
  path: string;
  size: number;
  /** What is wrong with it beside its bytes, such as a snapshot that can be written to. */
  flaw?: string;
}

/** The images of one pool, looked at and written to by other means than the appliance's. */
export interface PoolImages {
  /** As the exporter is told it. */
  path(kind: ImageKind, id: string, folder?: string): string;
  write(volumeId: string, offset: number, bytes: Buffer): Promise<void>;
  bytes(kind: ImageKind, id: string, folder?: string): Promise<Buffer>;
  images(): Promise<HeldImage[]>;
  /** What is being made, or was left behind, by names for people. */
  leftovers(): Promise<string[]>;
}

/** The bytes of a marked block follow from mark and place, so that one at the wrong place is seen. */
export function pattern(mark: string, length: number): Buffer {
  const seed = createHash('sha256').update(mark).digest();
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; at += 512) {
    seed.copy(bytes, at, 0, Math.min(seed.length, length - at));
    if (at + 40 <= length) bytes.writeUInt32LE(at, at + 36);
  }
  return bytes;
}

/** Where two differ, in words; undefined when they do not. */
export function difference(found: Buffer, wanted: Buffer): string | undefined {
  if (found.equals(wanted)) return undefined;
  if (found.length !== wanted.length) return `${found.length} bytes instead of ${wanted.length}`;
  const at = found.findIndex((byte, place) => byte !== wanted[place]);
  return `byte ${at} is ${found[at]} instead of ${wanted[at]}`;
}

/** Is it exactly one of these? A mixture of two instants is none of them. */
export function oneOf(found: Buffer, wanted: readonly Buffer[]): number {
  return wanted.findIndex(bytes => bytes.equals(found));
}
