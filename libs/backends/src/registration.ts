import type { z } from 'zod';

/** What registering a backend asks of its kind, without a connection. */
export interface Registration<Config = unknown> {
  /** Strict: a key that it does not know is an error. What it gives is what the registry keeps, and may be read again. */
  readonly config: z.ZodType<Config>;
  /** Strict; a kind that needs none takes none. */
  readonly credentials: z.ZodType<Record<string, string>>;
  /** Keys of the configuration that say where things are: they stay while it holds anything of ours. */
  readonly fixed: readonly string[];
  /** Those that say by whose word a principal without a key is let in: they stay while there is one. */
  readonly keyless?: readonly string[];
  /** URLs that the adapter connects to, by the key that they come from. */
  addresses(config: Config): Readonly<Record<string, string>>;
  /** What it can do, for people and programs. */
  capabilities(config: Config): Record<string, unknown>;
  /**
   * The configuration of one tenant's share: the same store, where this tenant neither sees nor meets what others have
   * there. The same for each call with the same `before`. Nothing is made by it.
   */
  share(config: Config, share: Share<Config>): Config;
}

export interface Share<Config> {
  applianceId: string;
  /** Whom the shared backend itself belongs to. */
  ownerId: string;
  tenant: { id: string; name: string };
  /** What this share had before the shared backend changed. */
  before?: Config;
  /** Those of the other shares. */
  others: readonly Config[];
}

/** One question of a connection test, and its answer as a sentence. */
export interface BackendCheck {
  name: string;
  ok: boolean;
  detail: string;
}
