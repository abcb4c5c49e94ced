import type { QueryClient } from '@tanstack/react-query';

/** As much of an event as says what to read again. */
export interface LiveEvent {
  type: 'operation' | 'audit';
  operation?: { id: string; resource: { kind: string } };
  audit?: { action: string; subject: { kind: string } };
}

/** Lists and objects that may look different after something happened to a resource of this kind: parts of paths. */
const TOUCHED: Readonly<Record<string, readonly string[]>> = {
  volume: ['/volumes', '/snapshots', '/publications', '/quotas', '/backends'],
  snapshot: ['/snapshots', '/volumes', '/quotas', '/backends'],
  snapshot_group: ['/snapshots', '/volumes', '/quotas'],
  volume_group: ['/volumes'],
  publication: ['/publications', '/volumes', '/hosts'],
  host: ['/hosts', '/publications'],
  bucket: ['/buckets', '/accesses', '/quotas', '/backends'],
  access: ['/accesses', '/buckets'],
  backend: ['/backends', '/overview', '/first-run'],
  endpoint: ['/endpoints'],
  cluster: ['/clusters'],
  tenant: ['/tenants'],
  'first-run': ['/first-run'],
  quota: ['/quotas'],
  user: ['/users', '/tokens', '/session/'],
  token: ['/tokens', '/users'],
  protection_template: ['/protection-templates'],
  template: ['/protection-templates'],
  'protection-template': ['/protection-templates', '/volumes'],
  'performance-policy': ['/performance-policies'],
  'snapshot-session': ['/snapshot-sessions', '/clusters'],
  session: ['/session'],
  bulk: ['/operations', '/volumes', '/snapshots', '/publications', '/buckets'],
  queue: ['/queues', '/workers', '/overview'],
  operation: ['/operations'],
  view: ['/session/views'],
  alert: ['/alerts'],
  receiver: ['/receivers', '/alerts'],
  silence: ['/silences', '/alerts'],
};

/** They are counted anew each time, so that pages read them now and then, however many events there are. */
const isTotal = (path: string): boolean => path.includes('/totals/');

/** A storm of events reads a list once, not a thousand times. */
const GATHER_MS = 400;

/** Query keys begin with the path of the contract; what events are about is read again if a page shows it. */
export class Invalidations {
  private readonly parts = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly client: QueryClient) {}

  heard({ operation, audit }: LiveEvent): void {
    if (operation) {
      this.touch(['/operations', '/overview', '/queues']);
      this.touch(TOUCHED[operation.resource.kind] ?? ['']);
    }
    if (audit) {
      this.touch(['/audit']);
      this.touch(TOUCHED[audit.subject.kind] ?? ['']);
    }
  }

  everything(): void {
    this.touch(['']);
  }

  /** Nothing is read again any more: not what was gathered, nor what is being read over something that is shown. */
  hold(): void {
    this.stop();
    void this.client.cancelQueries({ predicate: ({ state }) => state.data !== undefined });
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.parts.clear();
  }

  private touch(parts: readonly string[]): void {
    for (const part of parts) this.parts.add(part);
    this.timer ??= setTimeout(() => this.flush(), GATHER_MS);
  }

  private flush(): void {
    this.timer = undefined;
    const parts = [...this.parts];
    this.parts.clear();
    void this.client.invalidateQueries({
      predicate: ({ queryKey: [path] }) => !isTotal(String(path)) && parts.some(part => String(path).includes(part)),
    });
  }
}
