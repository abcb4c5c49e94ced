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
const AT_ONCE = 16;

/** Who may read which VolumeSnapshots: `get`, of all of a namespace or of each that is named. */
export class AccessReviews {
  private readonly allowed = new Map<string, number>();

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
    const key = JSON.stringify([user, namespace, names]);
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
    const { status } = await this.kube.create<{ status: { allowed: boolean } }>(REVIEWS, {}, body, signal);
    return status.allowed === true;
  }

  private remember(key: string): void {
    if (this.allowed.size >= REMEMBERED) this.allowed.delete(this.allowed.keys().next().value!);
    this.allowed.set(key, this.clock() + REMEMBERED_MS);
  }
}
