/** What a caller may rely on, with nothing of how it is done: names, sizes and bytes; no operations, no crashes. */
export interface ModelVolume {
  id: string;
  bytes: Buffer;
  /** Sorted names. */
  hosts: Set<string>;
  snapshots: Map<string, ModelSnapshot>;
}

export interface ModelSnapshot {
  id: string;
  bytes: Buffer;
  /** Names of clones that were made from it. */
  clones: Set<string>;
}

export class BlockModel {
  readonly volumes = new Map<string, ModelVolume>();
  /** The last one that went into the recycle bin under a name. */
  readonly bin = new Map<string, ModelVolume>();

  create(name: string, id: string, bytes: Buffer): void {
    this.volumes.set(name, { id, bytes, hosts: new Set(), snapshots: new Map() });
  }

  write(name: string, offset: number, bytes: Buffer): void {
    bytes.copy(this.volumes.get(name)!.bytes, offset);
  }

  expand(name: string, size: number): void {
    const volume = this.volumes.get(name)!;
    volume.bytes = Buffer.concat([volume.bytes, Buffer.alloc(size - volume.bytes.length)]);
  }

  snapshot(name: string, snapshot: string, id: string): void {
    const { bytes, snapshots } = this.volumes.get(name)!;
    snapshots.set(snapshot, { id, bytes: Buffer.from(bytes), clones: new Set() });
  }

  /** A snapshot with a clone stays, and so does a volume with snapshots or publications. */
  mayDelete(name: string): boolean {
    const volume = this.volumes.get(name)!;
    return volume.snapshots.size === 0 && volume.hosts.size === 0;
  }

  delete(name: string): void {
    const volume = this.volumes.get(name)!;
    this.volumes.delete(name);
    this.bin.set(name, volume);
    this.forgetClone(name);
  }

  /** It is a clone of what it was made from again, if that is there still. */
  restore(name: string): void {
    this.volumes.set(name, this.bin.get(name)!);
    this.bin.delete(name);
  }

  forgetClone(name: string): void {
    for (const volume of this.volumes.values())
      for (const snapshot of volume.snapshots.values()) snapshot.clones.delete(name);
  }
}
