/** Where a receiver is, with its secrets: sealed as a whole where it is kept. */
export type Target =
  | { kind: 'webhook'; url: string; secret: string }
  | { kind: 'slack'; url: string }
  | { kind: 'teams'; url: string }
  | { kind: 'pagerduty'; routingKey: string; region: 'us' | 'eu' }
  | {
      kind: 'smtp';
      host: string;
      port: number;
      /** tls: from the first byte; starttls: from the greeting on, or not at all; none: never, for a relay beside it. */
      security: 'tls' | 'starttls' | 'none';
      from: string;
      to: string[];
      user?: string | undefined;
      password?: string | undefined;
    };
export type ReceiverKind = Target['kind'];

export const PAGERDUTY = {
  us: 'https://events.pagerduty.com/v2/enqueue',
  eu: 'https://events.eu.pagerduty.com/v2/enqueue',
} as const;

/** For people: says nothing that lets anybody post there. A path may be a secret. */
export function shownAddress(target: Target): string {
  switch (target.kind) {
    case 'webhook':
    case 'slack':
    case 'teams':
      return new URL(target.url).origin;
    case 'pagerduty':
      return new URL(PAGERDUTY[target.region]).origin;
    case 'smtp':
      return `${target.to.join(', ')} by ${target.host}:${target.port}`;
  }
}
