import { createHash } from 'node:crypto';
import { AtOnce } from '../at-once.js';
import type { KubeClient } from '../kube/kube-client.js';

export interface UserInfo {
  username: string;
  uid?: string;
  groups?: string[];
  extra?: Record<string, string[]>;
}

const REVIEWS = { api: 'authorization.k8s.io/v1', plural: 'subjectaccessreviews' };
/** Between the look of the webhook and that of the controller usually passes less; an API server itself remembers for longer. */
const REMEMBERED_MS = 10_000;
const REMEMBERED = 2_000;
/** Of all who ask. */
const AT_ONCE = 16;

/** Who may read which VolumeSnapshots: `get`, of all of a namespace or of each that is named. */
export class AccessReviews {
  /** Until when, by what was asked, the oldest first. */
  private readonly allowed = new Map<string, number>();
  private readonly reviews = new AtOnce(AT_ONCE);

  constructor(
    private readonly kube: KubeClient,
    private readonly clock: () => number = () => performance.now(),
  ) {}

  /** The names that this user may not read. */
  async denied(
    user: UserInfo,
    namespace: string,
    names: readonly string[],
    signal?: AbortSignal,
  ): Promise<readonly string[]> {
    // What is asked for may be large, and is not ours.
    const key = createHash('sha256')
      .update(JSON.stringify([user, namespace, names]))
      .digest('base64');
    if ((this.allowed.get(key) ?? 0) > this.clock()) return [];
    const denied = (await this.ask(user, { namespace }, signal))
      ? []
      : await this.deniedOf(user, namespace, names, signal);
    if (denied.length === 0) this.remember(key);
    return denied;
  }

  private async deniedOf(user: UserInfo, namespace: string, names: readonly string[], signal?: AbortSignal) {
    const denied: string[] = [];
    for (let at = 0; at < names.length && denied.length === 0; at += AT_ONCE) {
      const portion = names.slice(at, at + AT_ONCE);
      const answers = await Promise.all(portion.map(name => this.ask(user, { namespace, name }, signal)));
      denied.push(...portion.filter((_, index) => !answers[index]));
    }
    return denied;
  }

  private async ask(
    user: UserInfo,
    what: { namespace: string; name?: string },
    signal?: AbortSignal,
  ): Promise<boolean> {
    const { username, uid, groups, extra } = user;
    const resourceAttributes = {
      verb: 'get',
      group: 'snapshot.storage.k8s.io',
      version: 'v1',
      resource: 'volumesnapshots',
      ...what,
    };
    const body = {
      apiVersion: REVIEWS.api,
      kind: 'SubjectAccessReview',
      spec: { user: username, uid, groups, extra, resourceAttributes },
    };
    const { status } = await this.reviews.run(() =>
      this.kube.create<{ status: { allowed: boolean } }>(REVIEWS, {}, body, signal),
    );
    return status.allowed === true;
  }

  get remembered(): number {
    return this.allowed.size;
  }

  private remember(key: string): void {
    const now = this.clock();
    this.allowed.delete(key);
    for (const [oldest, until] of this.allowed) {
      if (until > now && this.allowed.size < REMEMBERED) break;
      this.allowed.delete(oldest);
    }
    this.allowed.set(key, now + REMEMBERED_MS);
  }
}
