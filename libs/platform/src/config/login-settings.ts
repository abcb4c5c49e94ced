/** Of logins by OpenID Connect. */
import { z } from 'zod';
import { oidcIssuer, oidcLoginClaim, oidcScopes, publicUrl } from '#platform/config/oidc-variables';
import { resourceName } from '#platform/config/setting-forms';

export const loginSettings = {
  /** Where browsers reach the gateway. */
  TRIVET_PUBLIC_URL: publicUrl.optional(),
  /** OpenID Connect: whose logins the page takes besides passwords. */
  TRIVET_OIDC_ISSUER: oidcIssuer.optional(),
  TRIVET_OIDC_CLIENT_ID: z.string().min(1).optional(),
  TRIVET_OIDC_CLIENT_SECRET_FILE: z.string().min(1).optional(),
  /** Stands on the button. */
  TRIVET_OIDC_NAME: z.string().min(1).max(60).default('single sign-on'),
  TRIVET_OIDC_SCOPES: oidcScopes.default('openid profile'),
  /** Of a person whom nobody has linked with a user yet: the user's login name. Absent: administrators link. */
  TRIVET_OIDC_LOGIN_CLAIM: oidcLoginClaim.optional(),
  TRIVET_OIDC_LOGIN_TENANT: resourceName('expected the name of a tenant').default('default'),
};
