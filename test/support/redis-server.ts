import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '#test/support/free-port';
import { until } from '#test/support/parts';

/** A Redis of a test's own, which it may wipe, kill and start again. Empty after each start. */
export class OwnRedis {
  private child: ChildProcess | undefined;
  private readonly folder = mkdtempSync(join(tmpdir(), 'trivet-redis-'));

  private constructor(private readonly port: number) {}

  /** Takes a port, starts nothing. */
  static async reserve(): Promise<OwnRedis> {
    return new OwnRedis(await freePort());
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.folder, '--save', ''];
    this.child = spawn('redis-server', [...args, '--maxmemory-policy', 'noeviction'], { stdio: 'ignore' });
    await until('Redis answers', () => this.ask(redis => redis.ping()).catch(() => undefined));
  }

  /** SIGKILL: as if its machine had gone. */
  async kill(): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise(resolve => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  async flushAll(): Promise<void> {
    await this.ask(redis => redis.flushall());
  }

  /** How many keys it holds. */
  keys(): Promise<number> {
    return this.ask(redis => redis.dbsize());
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async ask<T>(question: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = new Redis(this.url, { maxRetriesPerRequest: 0, retryStrategy: () => null });
    redis.on('error', () => {});
    try {
      return await question(redis);
    } finally {
      redis.disconnect();
    }
  }
}
