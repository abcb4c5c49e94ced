/**
 * What the conformance suite runs against: a COSI socket, and a hand on the store behind it. The same suite runs on the
 * room alone, on the whole appliance with the fake store, and on a real one.
 */
export interface CosiTarget {
  socketPath: string;
  driverName: string;
  /** Begins every bucket name of this target; at most 20 characters, legal as the beginning of a name. */
  prefix: string;
  control: StoreControl;
  close(): Promise<void>;
}

/** Looks at and changes the store directly, past the appliance. */
export interface StoreControl {
  /** A bucket that somebody else made. */
  makeForeignBucket(name: string): Promise<void>;
  /** A bucket that somebody else made and that an administrator registered. */
  registerBucket(name: string): Promise<void>;
  putObject(bucket: string): Promise<void>;
  /** Buckets of this target's prefix at the store, sorted. */
  buckets(): Promise<string[]>;
  /** Accounts that the appliance made at the store for this target. */
  accounts(): Promise<string[]>;
  /** Makes the store unreachable, or reachable again. */
  setDown(down: boolean): Promise<void>;
}

export interface CosiSettings {
  grantMismatch?: 'already_exists' | 'invalid_argument';
  accessModeNumbers?: 'auto' | 'r1' | 'r3';
}

export type CosiSetup = (settings?: CosiSettings) => Promise<CosiTarget>;
