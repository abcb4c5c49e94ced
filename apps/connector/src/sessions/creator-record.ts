import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { UserInfo } from './access-reviews.js';
import { CREATOR_ANNOTATION, type SessionRequest } from './resources.js';

/** Between the webhook's look and the moment at which the object is stored. */
const LASTS_MS = 60_000;
/** By then all connectors of a cluster have another certificate: the kubelet renews a Secret within two minutes, and it is looked at every 30 s. */
export const KEY_SPREADS_MS = 180_000;

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
  private constructor(
    private readonly key: Buffer,
    private readonly previous?: { key: Buffer; until: number },
  ) {}

  static of(webhookKey: string): CreatorRecords {
    return new CreatorRecords(keyOf(webhookKey));
  }

  /** With another certificate. What was signed with the key before stays good; whoever has that key can sign nothing new with it. */
  renewed(webhookKey: string, now: number): CreatorRecords {
    const key = keyOf(webhookKey);
    return key.equals(this.key) ? this : new CreatorRecords(key, { key: this.key, until: now + KEY_SPREADS_MS });
  }

  write(user: UserInfo, namespace: string, snapshots: readonly string[], now: number): string {
    const signature = sign(this.key, { user, namespace, snapshots, at: now });
    return JSON.stringify({ user, at: now, signature, key: nameOf(this.key) });
  }

  /** By its own word it was signed with a key that is not known here: another connector may have heard of a new one sooner. */
  isOfUnknownKey({ metadata }: SessionRequest): boolean {
    try {
      const { key } = JSON.parse(metadata.annotations?.[CREATOR_ANNOTATION] ?? '');
      const known = [this.key, ...(this.previous ? [this.previous.key] : [])].map(nameOf);
      return typeof key === 'string' && !known.includes(key);
    } catch {
      return false;
    }
  }

  /** Undefined: nobody vouches for it. */
  read({ metadata, spec }: SessionRequest): UserInfo | undefined {
    try {
      const { user, at, signature } = JSON.parse(metadata.annotations?.[CREATOR_ANNOTATION] ?? '');
      const content = { user, namespace: metadata.namespace!, snapshots: spec.snapshots, at };
      const given = Buffer.from(String(signature));
      const isSigned = (key: Buffer): boolean => {
        const due = Buffer.from(sign(key, content));
        return given.length === due.length && timingSafeEqual(given, due);
      };
      const { previous } = this;
      if (!isSigned(this.key) && !(previous && at <= previous.until && isSigned(previous.key))) return undefined;
      return Math.abs(Date.parse(metadata.creationTimestamp!) - at) <= LASTS_MS ? user : undefined;
    } catch {
      return undefined;
    }
  }
}

const keyOf = (webhookKey: string): Buffer =>
  Buffer.from(hkdfSync('sha256', webhookKey, '', 'trivet: creator of a session request', 32));

/** Says nothing of the key. */
const nameOf = (key: Buffer): string => createHash('sha256').update(key).digest('base64url').slice(0, 16);

const sign = (key: Buffer, { user, namespace, snapshots, at }: Content): string =>
  createHmac('sha256', key)
    .update(JSON.stringify([user, namespace, snapshots, at]))
    .digest('base64');
