import { execFile } from 'node:child_process';

/** The `rbd` program, a process for each call. The key is in a file that the configuration names. */
export class RbdProgram {
  constructor(private readonly configuration: string) {}

  /** @returns what it printed */
  run(args: readonly string[], input?: Buffer): Promise<string> {
    return new Promise((resolve, reject) => {
      const child = execFile(
        'rbd',
        ['-c', this.configuration, ...args],
        { maxBuffer: 64 * 1024 * 1024 },
        (error, stdout) => (error ? reject(error) : resolve(stdout)),
      );
      // One that ended early says so by its code.
      child.stdin!.on('error', () => {});
      child.stdin!.end(input);
    });
  }

  /** Writes pieces of an image in one call, by the format of `rbd export-diff`. */
  write(image: string, size: number, pieces: readonly { offset: number; data: Buffer }[]): Promise<string> {
    const parts: Buffer[] = [Buffer.from('rbd diff v1\n'), record('s', size)];
    for (const { offset, data } of pieces) parts.push(record('w', offset, data.length), data);
    parts.push(Buffer.from('e'));
    return this.run(['import-diff', '-', image], Buffer.concat(parts));
  }
}

function record(tag: string, ...numbers: number[]): Buffer {
  const made = Buffer.alloc(1 + 8 * numbers.length, tag);
  numbers.forEach((value, n) => void made.writeBigUInt64LE(BigInt(value), 1 + 8 * n));
  return made;
}
