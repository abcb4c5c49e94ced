import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { bareEnvironment } from '../environment.js';
import { type Home, writeWhole } from '../home.js';
import { listensAt } from '../processes/listeners.js';
import { findProgram } from './command.js';
import { type Lack, lacking, type Part, type PartContext } from './part.js';

/** Debian's redis-server on a port and a folder of the home; its password is in the configuration file, not in argv. */
export const redisPart: Part = {
  name: 'redis',
  addressVariable: 'TRIVET_REDIS_URL',
  absent: { TRIVET_REDIS_URL: 'none' },

  async check(): Promise<Lack | undefined> {
    const without = 'operations are dispatched by PostgreSQL alone';
    return lacking(['redis-server'], ['redis-server'], without, 'set TRIVET_REDIS_URL');
  },

  async start(context: PartContext): Promise<Record<string, string>> {
    const { home } = context;
    const program = findProgram('redis-server') as string;
    const port = await context.ports.take('redis');
    const password = passwordOf(home);
    const folder = home.file('redis');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const configuration = home.file('redis', 'redis.conf');
    writeWhole(configuration, redisConfiguration(folder, port, password));
    await context.run({
      name: 'redis',
      command: program,
      args: [configuration],
      env: { ...bareEnvironment(), ...context.mark },
      cwd: folder,
      logFile: home.log('redis'),
      stopSignal: 'SIGTERM',
      stopGraceMs: 10_000,
      readyMs: 60_000,
      ports: [port],
      ready: async pid => listensAt(pid, port) && ping(port, password),
    });
    return { TRIVET_REDIS_URL: `redis://:${password}@127.0.0.1:${port}` };
  },
};

function passwordOf(home: Home): string {
  const file = home.file('secrets', 'redis-password');
  if (!existsSync(file)) writeWhole(file, `${randomBytes(24).toString('hex')}\n`);
  return readFileSync(file, 'utf8').trim();
}

function redisConfiguration(folder: string, port: number, password: string): string {
  return `bind 127.0.0.1
port ${port}
requirepass ${password}
dir "${folder.replaceAll(/["\\]/g, '\\$&')}"
daemonize no
supervised no
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
set-proc-title no
`;
}

/** True when it has loaded its data and answers PONG. */
function ping(port: number, password: string): Promise<boolean> {
  return new Promise(resolve => {
    let answer = '';
    const socket = connect({ host: '127.0.0.1', port });
    const done = (result: boolean): void => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(1_000, () => done(false));
    socket.once('error', () => done(false));
    socket.once('close', () => done(false));
    socket.on('data', chunk => {
      answer += chunk.toString('latin1');
      if (answer.includes('+PONG')) done(true);
      else if (answer.includes('-LOADING') || answer.includes('-ERR')) done(false);
    });
    socket.write(`AUTH ${password}\r\nPING\r\n`);
  });
}
