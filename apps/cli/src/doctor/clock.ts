import { createRequire } from 'node:module';
import { type Finding, ok, warn } from './check.js';

/** Larger than struct timex on any 64-bit Linux; all zero: only look. */
const TIMEX_BYTES = 256;
/** What adjtimex(2) answers while the kernel's clock follows nobody. */
const TIME_ERROR = 5;

export type ClockState = 'follows' | 'free' | 'unknown';

/** By the kernel itself, whichever program sets its clock. A container may be forbidden to ask. */
export function clockState(): ClockState {
  try {
    const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi');
    const adjtimex = koffi.load(null).func('int adjtimex(void *timex)');
    const state = adjtimex(Buffer.alloc(TIMEX_BYTES)) as number;
    return state < 0 ? 'unknown' : state === TIME_ERROR ? 'free' : 'follows';
  } catch {
    return 'unknown';
  }
}

export function clockFinding(state: ClockState): Finding {
  if (state === 'free')
    return warn(
      'time server',
      'the clock of this host follows none',
      'run chrony or systemd-timesyncd: certificates, tokens and schedules go by the clock',
    );
  return ok('time server', state === 'follows' ? 'the clock follows one' : 'not known here');
}
