import { createRequire } from 'node:module';
import type { Writable } from 'node:stream';
import type { Redis } from 'ioredis';

/** Loaded where Redis is used, as BullMQ is: together they are a fifth of what a worker's start costs. */
const ioredis = (): typeof import('ioredis') => createRequire(import.meta.url)('ioredis');

/**
 * Redis is a doorbell: a connection must fail fast for who rings, and wait for ever for who listens. Errors are events
 * here; ioredis ends the process of whoever does not listen for them.
 */
export function connectRedis(url: string, role: 'ring' | 'listen', onError: (error: Error) => void): Redis {
  const { Redis } = ioredis();
  const redis = new Redis(url, {
    maxRetriesPerRequest: role === 'listen' ? null : 1,
    enableOfflineQueue: role === 'listen',
    connectTimeout: 2_000,
    retryStrategy: attempt => Math.min(50 * 2 ** attempt, 2_000),
    lazyConnect: false,
  });
  redis.on('error', onError);
  redis.on('connect', () => writeTogether(redis.stream));
  return redis;
}

/**
 * Each command is a write of its own, and a system call costs more than all that is done for a command. What one turn of
 * the event loop sends goes out together. (ioredis can collect commands too, but that costs more than it saves here.)
 */
function writeTogether(stream: Writable): void {
  const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
  const together = (...args: unknown[]): boolean => {
    if (stream.writableCorked === 0) {
      stream.cork();
      setImmediate(() => stream.uncork());
    }
    return write(...args);
  };
  stream.write = together as Writable['write'];
}
