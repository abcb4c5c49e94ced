import type { ImageRef } from '#backends/image-ref';
import type { LeaseSignal } from '#platform/lease-signal';

/**
 * The port for what serves volumes to hosts. A target's whole state follows from Postgres and is applied as a whole:
 * publish, unpublish, a host's new initiators and the replay after a restart are one call. The caller holds the volume's
 * `exports` slot. As with the other ports: no retries, StorageError only, `signal` ends a call whose effect is unknown
 * then, and a lower `fence` than one already seen for the target is refused with `aborted`.
 */
export interface Exporter {
  health(signal: AbortSignal): Promise<void>;

  /**
   * Starts the daemon of this tenant and pool unless it runs, and continues one that was left stopped. Its identity
   * changes with every start: whoever applied targets to another one must apply them again.
   */
  ensureDaemon(daemon: DaemonRef, signal: LeaseSignal): Promise<{ instance: string }>;

  /** Undefined while it does not run. Without effect. */
  daemonInstance(daemon: DaemonRef, signal: AbortSignal): Promise<string | undefined>;

  /**
   * Makes the target exist exactly as given, for exactly these initiators. O(initiators of this volume). Sessions of
   * initiators that are not (or no longer) listed are ended and verified gone before it resolves, others do not notice
   * (invariant I2); a unit that was left offline goes online (I3). A missing image: `failed_precondition`,
   * field `image`, and no target.
   */
  applyTarget(target: TargetSpec, fence: string, signal: LeaseSignal): Promise<AppliedTarget>;

  /** Has the exporter see the new size of the image, under I/O and without an error to any session (invariant I3). */
  resizeTarget(target: TargetRef, image: ImageRef, fence: string, signal: LeaseSignal): Promise<void>;

  /** `force` ends its sessions; without it a target with sessions stays: `in_use`. A missing one is not an error. */
  removeTarget(
    target: TargetRef,
    options: { force: boolean },
    fence: string,
    signal: LeaseSignal,
  ): Promise<'removed' | 'absent' | 'in_use'>;

  /** All targets with their sessions; empty when the daemon does not run. For the audit and the dashboard. */
  listTargets(daemon: DaemonRef, signal: AbortSignal): Promise<ObservedTarget[]>;

  /**
   * What hosts read and wrote at each target since the last call on this host, whoever made it; targets at which nothing was done are left
   * out. Undefined: the daemon does not run, or there is nothing to compare with: its first time, or the last was too long ago.
   */
  ioSince(daemon: DaemonRef, signal: AbortSignal): Promise<{ seconds: number; targets: TargetIo[] } | undefined>;

  /** Processes that write to images of this daemon: stopped for a group's cut (invariant F4). */
  writers(daemon: DaemonRef, signal: AbortSignal): Promise<readonly number[]>;

  /**
   * Targets that somebody may have changed after a successor had: stopped between its look at its lease and its request,
   * which the exporter cannot refuse. They stay suspect until they are applied or removed once more.
   */
  suspectTargets(daemon: DaemonRef, signal: AbortSignal): Promise<SuspectTarget[]>;

  /** Ends the daemon, its targets and sessions with it. */
  stopDaemon(daemon: DaemonRef, signal: LeaseSignal): Promise<void>;

  close(): void;
}

/** One daemon for each tenant and set of portals of a pool (invariant I4): mostly the pool has one. */
export interface DaemonRef {
  tenantId: string;
  pool: string;
  /** `address:port` each. */
  portals: readonly string[];
  /** Which of the pool's daemons; absent: the first. */
  nth?: number;
  /** How many the pool has; absent: one. Those beyond are ended before the first one is started, or asked for. */
  of?: number;
}

export interface TargetRef {
  daemon: DaemonRef;
  /** Unique over the appliance; part of the disk's identity (invariant I1). */
  tid: number;
  iqn: string;
}

export interface TargetSpec extends TargetRef {
  lun: number;
  image: ImageRef;
  /** uuid of the volume: SCSI id and serial number follow from it. */
  volumeId: string;
  /** What the unit says of itself beside its serial number; given with its first apply and kept. */
  identity: UnitIdentity;
  initiators: readonly Initiator[];
  /** Its blocks are reserved: discards are refused, which would give them back. */
  thick?: boolean;
  /**
   * A user's password has changed: it replaces the old one in the whole daemon, and other targets that use it admit the
   * user again once they are applied. Without it another password than that of other targets is `already_exists`.
   */
  replaceChap?: boolean;
}

export interface UnitIdentity {
  /** Hosts choose their settings for multipath by both. */
  vendor: string;
  product: string;
  /** What page 0x80 says: the volume's uuid without its dashes, or the serial number of page 0x83. */
  unitSerial: 'uuid' | 'naa';
}

export interface Initiator {
  iqn: string;
  /** Once one account is bound to a target, tgt asks every initiator for one: the domain never mixes. */
  chap?: { user: string; password: string };
}

export interface AppliedTarget {
  /** NAA of page 0x83 as the daemon reports it, lower-case hex without prefix. */
  serialNumber: string;
  instance: string;
}

export interface SuspectTarget {
  tid: number;
  iqn: string;
  /** The highest one seen for it: with it, a target that belongs to nobody any more may be removed. */
  fence: string;
}

/** Commands that ended, and their bytes. */
export interface TargetIo {
  tid: number;
  reads: number;
  writes: number;
  readBytes: number;
  writtenBytes: number;
}

export interface ObservedTarget {
  tid: number;
  iqn: string;
  /** Backing path of the unit, when there is one. */
  path?: string;
  initiators: readonly string[];
  sessions: readonly { initiator: string; addresses: readonly string[] }[];
}
