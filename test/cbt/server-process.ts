import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';
import { NODE_FLAGS } from '#platform/process/node-flags';
import type { Size, StreamServer } from '#test/cbt/stream-server';

/** The server of stream-server.ts. */
export class ServerProcess {
  private constructor(
    private readonly child: ChildProcess,
    readonly doors: StreamServer,
  ) {}

  /** @param ranges that its snapshot has */
  static async start(ranges: number): Promise<ServerProcess> {
    const script = join(PACKAGE_ROOT, 'dist/test/cbt/stream-server.js');
    const child = fork(script, [String(ranges)], {
      execArgv: [...NODE_FLAGS],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const [doors] = (await once(child, 'message')) as [StreamServer];
    return new ServerProcess(child, doors);
  }

  /** `most` since the start, or since the last `reset`. */
  async size(message: 'size' | 'reset' = 'size'): Promise<Size> {
    this.child.send(message);
    const [size] = (await once(this.child, 'message')) as [Size];
    return size;
  }

  async stop(): Promise<void> {
    const gone = once(this.child, 'exit');
    this.child.disconnect();
    await gone;
  }
}
