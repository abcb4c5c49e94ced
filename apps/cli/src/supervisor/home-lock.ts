import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type Home, LauncherError } from '../home.js';
import { livingState } from '../state.js';

/**
 * One supervisor a home. The lock is a socket in the abstract namespace: the kernel gives it to one process and frees
 * it with that process, so it can neither be left behind nor be taken twice.
 */
export function lockHome(home: Home): Promise<Server | undefined> {
  const name = createHash('sha256').update(realpathSync(home.path)).digest('hex').slice(0, 32);
  return new Promise((resolve, reject) => {
    const server = createServer(socket => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    server.listen(`\0trivet/home/${name}`, () => {
      server.unref();
      resolve(server);
    });
  });
}

const HANDOVER_MS = 10_000;

/** As lockHome, but waits for a holder that is only about to end. Undefined: a supervisor lives, and its state is there. */
export async function takeHome(home: Home): Promise<Server | undefined> {
  for (const end = Date.now() + HANDOVER_MS; ; ) {
    const lock = await lockHome(home);
    if (lock !== undefined || livingState(home) !== undefined) return lock;
    if (Date.now() > end)
      throw new LauncherError(
        `another trivet works on ${home.path} and does not end: find it with ps, end it, then repeat`,
      );
    await delay(50);
  }
}
