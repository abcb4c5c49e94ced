import type { CallLogger } from '#protocol/call-log';
import type { BlockStorage } from '#storage/block/block-storage';
import type { SessionDirectory } from '#tenancy/logins/session-directory';

/** Whoever imports CspModule provides CspOptions under this token. */
export const CSP_OPTIONS = Symbol('CspOptions');

/** What a call of each class waits for its operation, in milliseconds (invariant E8); the work goes on afterwards. */
export interface CspWaits {
  createVolume: number;
  /** The driver's provisioner gives up after 30 s, and asks again while a clone goes on in the background. */
  cloneVolume: number;
  createSnapshot: number;
  publish: number;
  unpublish: number;
  other: number;
}

export const DEFAULT_WAITS: CspWaits = {
  createVolume: 20_000,
  cloneVolume: 10_000,
  createSnapshot: 25_000,
  publish: 50_000,
  unpublish: 50_000,
  other: 25_000,
};

export interface CspOptions {
  storage: BlockStorage;
  sessions: SessionDirectory;
  waits?: Partial<CspWaits>;
  log?: CallLogger;
}
