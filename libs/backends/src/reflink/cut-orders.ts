/** What a cut's watchdog is told on stdin, as one line of JSON, and what it answers on stdout, as another. */
import type { ProcessIdentity } from '#backends/linux/process-state';

export interface CutOrders {
  writers: ProcessIdentity[];
  /** Counted from the first SIGSTOP. */
  deadlineMs: number;
  copies: CutCopy[];
}

export interface CutCopy {
  /** Paths below descriptors that the watchdog inherits. */
  source: string;
  target: string;
  /** The source must still be this file. */
  inode: string;
  how: 'clone' | 'copy';
}

export type CutReport =
  | { result: 'done'; pausedMs: number }
  /** The writers could not be stopped, or not be kept stopped: the cut is none. */
  | { result: 'unavailable'; message: string; pausedMs: number }
  | { result: 'deadline'; copied: number; pausedMs: number }
  | { result: 'error'; code?: string; message: string; pausedMs: number };
