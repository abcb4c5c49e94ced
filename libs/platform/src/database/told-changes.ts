import type { Database } from '#platform/database/database';

const CHANNEL = 'trivet_changed';

/** doors: tenants, endpoints, backends. queues: classes that people pause. */
export type ToldSubject = 'doors' | 'queues';

/**
 * What people change is told to all processes by its commit (trivet.tell_changed), so that who follows it need not look all the
 * time. While `isConnected` says no, nothing is told; with each connection that comes or goes everything may have changed.
 */
export class ToldChanges {
  private readonly hearers: { subject: ToldSubject; hear: () => void }[] = [];
  private readonly listener: ReturnType<Database['listen']>;

  constructor(database: Pick<Database, 'listen'>) {
    this.listener = database.listen(
      [CHANNEL],
      (_, told) => this.tell(told),
      () => this.tell(undefined),
      () => this.tell(undefined),
    );
  }

  on(subject: ToldSubject, hear: () => void): void {
    this.hearers.push({ subject, hear });
  }

  get isConnected(): boolean {
    return this.listener.connected();
  }

  stop(): Promise<void> {
    return this.listener.stop();
  }

  private tell(told: string | undefined): void {
    for (const { subject, hear } of this.hearers) if (told === undefined || told === subject) hear();
  }
}
