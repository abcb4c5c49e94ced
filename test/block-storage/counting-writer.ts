import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

const SCRIPT = `
  const { openSync, writeSync } = require('node:fs');
  const files = process.argv.slice(1).map(path => openSync(path, 'r+'));
  const counter = Buffer.alloc(8);
  for (let n = 1n; ; n++) {
    counter.writeBigUInt64LE(n);
    for (const file of files) writeSync(file, counter, 0, 8, 0);
    if (n === 1n) process.stdout.write('writing');
  }
`;

/**
 * Stands for an exporter with a busy client: writes 1, 2, 3 ... to each of the files, always in the same order. So at any
 * instant no file is ahead of the one before it, and the last is behind the first by at most one.
 */
export class CountingWriter {
  private constructor(private readonly child: ChildProcess) {}

  static async start(paths: readonly string[]): Promise<CountingWriter> {
    const child = spawn(process.execPath, ['-e', SCRIPT, ...paths], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout!, 'data');
    return new CountingWriter(child);
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** R, S, D: it runs. T: it is stopped. */
  state(): string {
    const stat = readFileSync(`/proc/${this.pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2)[0]!;
  }

  async stop(): Promise<void> {
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
  }
}

export const counterIn = (path: string): bigint => readFileSync(path).readBigUInt64LE(0);
