/** As much of it as tests use; it brings no types of its own. */
declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http';

  export default class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>);
    callback(): RequestListener;
    readonly Client: { find(id: string): Promise<object> };
    readonly Grant: new (
      of: Readonly<Record<string, unknown>>,
    ) => { addOIDCScope(scopes: string): void; save(): Promise<string> };
  }
}
