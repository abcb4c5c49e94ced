import { dirname, join } from 'node:path';
import { bareEnvironment } from '../environment.js';
import type { Home } from '../home.js';
import { listensAt } from '../processes/listeners.js';
import type { Lack, Part, PartContext } from './part.js';
import { hydrate, packagedBinaries, place } from './postgres-binaries.js';
import {
  answers,
  createRoles,
  initialise,
  own,
  passwordsOf,
  removeStaleLock,
  urls,
  writeServerSettings,
} from './postgres-cluster.js';
import { raiseCluster } from './postgres-major.js';

export const postgresPart: Part = {
  name: 'postgres',
  addressVariable: 'TRIVET_DATABASE_URL',
  absent: {},

  async check(): Promise<Lack | undefined> {
    if (packagedBinaries() !== undefined) return undefined;
    return {
      reason: `no PostgreSQL binaries for ${process.platform} ${process.arch}`,
      packages: [],
      remedy: 'set TRIVET_DATABASE_URL, TRIVET_DATABASE_ENGINE_URL and TRIVET_DATABASE_OWNER_URL',
    };
  },

  async start(context: PartContext): Promise<Record<string, string>> {
    const { home } = context;
    const placement = await place(home);
    if (placement.outside === undefined) hydrate(placement.binaries);
    else context.keepOutside(placement.outside);
    const passwords = passwordsOf(home);
    const port = await context.ports.take('postgres');
    own(placement.sockets, placement);
    own(dirname(placement.data), placement);
    await raiseCluster(placement, context);
    await initialise(placement, passwords.postgres, context);
    writeServerSettings(placement, port, context.throwAway);
    await context.run({
      name: 'postgres',
      command: join(placement.binaries, 'bin', 'postgres'),
      args: ['-D', placement.data],
      env: { ...bareEnvironment(), ...context.mark },
      cwd: placement.data,
      uid: placement.uid,
      gid: placement.gid,
      logFile: home.log('postgres'),
      // Fast shutdown: ends sessions, writes a checkpoint.
      stopSignal: 'SIGINT',
      stopGraceMs: 30_000,
      readyMs: 120_000,
      ports: [port],
      ready: async pid => listensAt(pid, port) && answers(port, passwords.postgres),
      beforeStart: async () => removeStaleLock(placement.data),
    });
    await createRoles(port, passwords);
    return urls(port, passwords);
  },
};

/** For tests and doctor, which make databases of their own. */
export function superuserUrl(home: Home, port: number): string {
  return `postgresql://postgres:${passwordsOf(home).postgres}@127.0.0.1:${port}/postgres`;
}
