import type { DaemonFolder } from '#backends/tgt/daemon-folder';

/** What units stand on, and how tgtd opens it. */
export interface UnitStore {
  /** As tgtd calls it. */
  readonly type: 'rdwr' | 'rbd';
  /** Whether tgtd carries out discards, and says so rightly. */
  readonly discards: boolean;
  /** Of one daemon; more would take too much of the host. */
  readonly maxUnits?: number;
  /** What tgtd lacks on this host to open it, for people; undefined when nothing. */
  lacking(): string | undefined;
  /** Writes what tgtd reads when it opens one into the daemon's folder; gives the options of a new unit. */
  prepare(folder: DaemonFolder): Promise<string | undefined>;
}

export const FILES: UnitStore = {
  type: 'rdwr',
  discards: true,
  lacking: () => undefined,
  prepare: async () => undefined,
};
