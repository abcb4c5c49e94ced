import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { UserInfo } from './access-reviews.js';
import { CREATOR_ANNOTATION, type SessionRequest } from './resources.js';

/** Between the webhook's look and the moment at which the object is stored. */
const LASTS_MS = 60_000;

interface Content {
  user: UserInfo;
  namespace: string;
  snapshots: readonly string[];
  at: number;
}

/**
 * Who created a request: Kubernetes tells it to admission webhooks alone, so ours writes it into an annotation, with a signature over what
 * was asked for and when. All connectors of a cluster share the key of the webhook's certificate, of which the signing key is made.
 */
export class CreatorRecords {
  private readonly key: Buffer;

  constructor(webhookKey: string) {
    this.key = Buffer.from(hkdfSync('sha256', webhookKey, '', 'trivet: creator of a session request', 32));
  }

  write(user: UserInfo, namespace: string, snapshots: readonly string[], now: number): string {
    return JSON.stringify({ user, at: now, signature: this.sign({ user, namespace, snapshots, at: now }) });
  }

  /** Undefined: nobody vouches for it. */
  read({ metadata, spec }: SessionRequest): UserInfo | undefined {
    try {
      const { user, at, signature } = JSON.parse(metadata.annotations?.[CREATOR_ANNOTATION] ?? '');
      const due = this.sign({ user, namespace: metadata.namespace!, snapshots: spec.snapshots, at });
      const given = Buffer.from(String(signature));
      if (given.length !== due.length || !timingSafeEqual(given, Buffer.from(due))) return undefined;
      return Math.abs(Date.parse(metadata.creationTimestamp!) - at) <= LASTS_MS ? user : undefined;
    } catch {
      return undefined;
    }
  }

  private sign({ user, namespace, snapshots, at }: Content): string {
    return createHmac('sha256', this.key)
      .update(JSON.stringify([user, namespace, snapshots, at]))
      .digest('base64');
  }
}
