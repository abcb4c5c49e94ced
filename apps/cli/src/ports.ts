import { randomInt } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { type Home, writeWhole } from './home.js';

/** Preferred when free. Those of the parts follow the gateway's. */
export const DEFAULT_PORTS = {
  http: 8740,
  https: 8743,
  cbt: 8745,
  worker: 8746,
  postgres: 8750,
  redis: 8751,
  rgw: 8752,
  'ceph-mon': 8753,
  'ceph-mon-v1': 8754,
  azurite: 8755,
  iscsi: 3260,
  'iscsi-ceph': 3261,
} as const;
export type PortName = keyof typeof DEFAULT_PORTS;

/** Below 32768 the kernel gives no port to outgoing connections, so none is taken while a process restarts. */
const LOWEST = 20_000;
const HIGHEST = 32_767;

export function isFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** Ports that this process holds, each for one home. */
const held = new Map<number, string>();

/**
 * Between the choice of a port and the moment in which its server listens, another home may not choose it. A name in the
 * kernel's abstract namespace is as wide as the network that both share, containers included, and goes with this process.
 */
function hold(port: number, home: string): Promise<boolean> {
  const holder = held.get(port);
  if (holder !== undefined) return Promise.resolve(holder === home);
  held.set(port, home);
  return new Promise(resolve => {
    const server = createServer();
    server.once('error', () => {
      held.delete(port);
      resolve(false);
    });
    server.listen({ path: `\0trivet-port-${port}` }, () => {
      server.unref();
      resolve(true);
    });
  });
}

export async function findFreePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = randomInt(LOWEST, HIGHEST + 1);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port between ${LOWEST} and ${HIGHEST}`);
}

/** A port of earlier starts that somebody else has now. */
export interface MovedPort {
  name: string;
  from: number;
  to: number;
}

/** Ports of a home: the default when it is free, else any free one, the same again at every later start. */
export class Ports {
  readonly #file: string;
  readonly #kept: Partial<Record<PortName, number>>;
  readonly #moved = new Map<PortName, MovedPort>();

  /** `preferDefaults` false: a throw-away home leaves the well-known ports to others. */
  constructor(
    home: Home,
    private readonly preferDefaults = true,
  ) {
    this.#file = home.file('ports.json');
    this.#kept = existsSync(this.#file) ? JSON.parse(readFileSync(this.#file, 'utf8')) : {};
  }

  kept(name: PortName): number | undefined {
    return this.#kept[name];
  }

  get moved(): MovedPort[] {
    return [...this.#moved.values()];
  }

  /** To be called while nothing of this home listens. A kept port that somebody else took is replaced. */
  async take(name: PortName): Promise<number> {
    const kept = this.#kept[name];
    const canHave = async (port: number): Promise<boolean> => (await isFree(port)) && (await hold(port, this.#file));
    if (kept !== undefined && (await canHave(kept))) return kept;
    // Parts start at the same time: what another one took meanwhile counts, too.
    const isTaken = (port: number): boolean => Object.values(this.#kept).includes(port);
    const preferred: number = DEFAULT_PORTS[name];
    let port = this.preferDefaults && (await canHave(preferred)) ? preferred : undefined;
    while (port === undefined || isTaken(port)) {
      const found = await findFreePort();
      port = (await canHave(found)) ? found : undefined;
    }
    // Another choice within one start: what callers know is the first.
    if (kept !== undefined) this.#moved.set(name, { name, from: this.#moved.get(name)?.from ?? kept, to: port });
    this.#kept[name] = port;
    writeWhole(this.#file, `${JSON.stringify(this.#kept, null, 2)}\n`);
    return port;
  }
}
