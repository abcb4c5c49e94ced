import type { Client } from 'pg';
import { DatabaseClient, type DatabaseClientConfig } from '#platform/database/database-client';

const RETRY_MS = 50;
const LONGEST_RETRY_MS = 2_000;

interface Hearer {
  channels: readonly string[];
  onNotify: (channel: string, payload: string) => void;
  onConnect: () => void;
  onLose: () => void;
  /** Its channels are listened to over the connection that there is. */
  hears: boolean;
}

export interface Listening {
  connected(): boolean;
  stop(): Promise<void>;
}

/**
 * The one connection of a process that listens, for all that hear something over it: PostgreSQL wakes each listening connection
 * at every commit that notifies, whatever the channel. It reconnects by itself.
 */
export class Notifications {
  private readonly hearers = new Set<Hearer>();
  private client: Client | undefined;
  /** Gives the connection up, and makes another one while somebody hears. */
  private lose: (() => void) | undefined;
  private retry: NodeJS.Timeout | undefined;

  constructor(private readonly config: () => DatabaseClientConfig) {}

  /**
   * @param channels none: it only hears of connections
   * @param onConnect after each connection, when LISTEN is active: reading again whatever is waited for then misses no end (invariant E6)
   * @param onLose it hears nothing from now on
   */
  listen(
    channels: readonly string[],
    onNotify: (channel: string, payload: string) => void,
    onConnect: () => void,
    onLose: () => void = () => {},
  ): Listening {
    const hearer: Hearer = { channels, onNotify, onConnect, onLose, hears: false };
    this.hearers.add(hearer);
    if (this.client) void this.hear(this.client);
    else if (!this.lose && !this.retry) void this.connect(0);
    return { connected: () => hearer.hears, stop: () => this.leave(hearer) };
  }

  private async connect(attempt: number): Promise<void> {
    this.retry = undefined;
    const next = new DatabaseClient(this.config());
    let failures = attempt;
    // A connection that ends while LISTEN is under way says so twice; one that follows is enough.
    const lose = () => {
      if (this.lose !== lose) return;
      this.lose = this.client = undefined;
      for (const hearer of this.hearers) {
        if (!hearer.hears) continue;
        hearer.hears = false;
        hearer.onLose();
      }
      next.removeAllListeners('notification');
      next.end().catch(() => {});
      if (this.hearers.size === 0) return;
      this.retry = setTimeout(
        () => void this.connect(failures + 1),
        Math.min(LONGEST_RETRY_MS, RETRY_MS * 2 ** failures),
      );
      this.retry.unref();
    };
    this.lose = lose;
    next.once('error', lose);
    next.once('end', lose);
    next.on('notification', ({ channel, payload = '' }) => {
      for (const { hears, channels, onNotify } of this.hearers)
        if (hears && channels.includes(channel)) onNotify(channel, payload);
    });
    try {
      await next.connect();
    } catch {
      return lose();
    }
    // Everybody has left meanwhile.
    if (this.lose !== lose) return void next.end().catch(() => {});
    failures = 0;
    this.client = next;
    await this.hear(next);
  }

  private async hear(client: Client): Promise<void> {
    const deaf = [...this.hearers].filter(({ hears }) => !hears);
    const channels = new Set(deaf.flatMap(hearer => hearer.channels));
    try {
      if (channels.size > 0) await client.query([...channels].map(channel => `LISTEN ${channel}`).join('; '));
    } catch {
      if (this.client === client) this.lose?.();
      return;
    }
    for (const hearer of deaf) {
      if (this.client !== client || hearer.hears || !this.hearers.has(hearer)) continue;
      hearer.hears = true;
      hearer.onConnect();
    }
  }

  private async leave(hearer: Hearer): Promise<void> {
    if (!this.hearers.delete(hearer)) return;
    hearer.hears = false;
    const { client } = this;
    if (this.hearers.size === 0) {
      clearTimeout(this.retry);
      this.retry = this.lose = this.client = undefined;
      await client?.end().catch(() => {});
      return;
    }
    const others = new Set([...this.hearers].flatMap(({ channels }) => channels));
    const over = hearer.channels.filter(channel => !others.has(channel));
    if (over.length > 0) await client?.query(over.map(channel => `UNLISTEN ${channel}`).join('; ')).catch(() => {});
  }
}
