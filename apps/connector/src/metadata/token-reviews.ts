import { AtOnce } from '../at-once.js';
import type { KubeClient } from '../kube/kube-client.js';
import type { UserInfo } from '../sessions/access-reviews.js';

const REVIEWS = { api: 'authentication.k8s.io/v1', plural: 'tokenreviews' };
const AT_ONCE = 16;
/** Whoever reaches the door may show a token. */
const MOST_WAITING = 256;

/** Too many ask at a time. */
export class TooManyReviews extends Error {}

interface TokenReview {
  status?: { authenticated?: boolean; audiences?: string[]; user?: UserInfo };
}

/** Whose a token is, as the API server says, for tokens that are meant for this service. Nothing of it is remembered. */
export class TokenReviews {
  private readonly reviews = new AtOnce(AT_ONCE);

  constructor(
    private readonly kube: KubeClient,
    private readonly audience: string,
  ) {}

  /** undefined: nobody's, over, or for another audience. */
  async userOf(token: string): Promise<UserInfo | undefined> {
    if (this.reviews.waiting >= MOST_WAITING) throw new TooManyReviews();
    const { audience } = this;
    const body = { apiVersion: REVIEWS.api, kind: 'TokenReview', spec: { token, audiences: [audience] } };
    const { status } = await this.reviews.run(() => this.kube.create<TokenReview>(REVIEWS, {}, body));
    // An authenticator that knows nothing of audiences names none: such a token may be for anything.
    return status?.authenticated === true && status.audiences?.includes(audience) ? status.user : undefined;
  }
}
