import { join } from 'node:path';
import { TgtDaemons } from '#backends/tgt/tgt-daemons';
import { unleased } from '#platform/lease-signal';
import type { Home } from '../home.js';
import { readState } from '../state.js';
import { tgtFolders } from '../tgt-processes.js';
import { type Lack, lacking, type Part, type PartContext } from './part.js';

const STOP_MS = 30_000;

/**
 * iSCSI targets in user space. Only the program has to be there, and needs no root: the worker starts a tgtd for each
 * tenant and pool, which outlives it.
 */
export const tgtPart: Part = {
  name: 'tgt',
  addressVariable: 'TRIVET_ISCSI_PORTALS',
  absent: {},

  async check(): Promise<Lack | undefined> {
    return lacking(['tgtd'], ['tgt'], 'volumes are kept, and no host can be served');
  },

  async start({ home, ports }: PartContext): Promise<Record<string, string>> {
    return {
      TRIVET_ISCSI_PORTALS: `127.0.0.1:${await ports.take('iscsi')}`,
      // Not below the home, whose path may be too long for a socket.
      TRIVET_TGT_DIR: tgtFolderOf(home),
    };
  },
};

const tgtFolderOf = (home: Home): string => join(home.run, 'tgt');

/** Ends every tgtd that a worker of this home started, sessions and all. Nobody starts another one any more. */
export async function stopTgt(home: Home, say: (line: string) => void): Promise<void> {
  for (const folder of tgtFolders(home, readState(home)?.env ?? {})) {
    const signal = unleased(AbortSignal.timeout(STOP_MS), STOP_MS);
    try {
      const count = await new TgtDaemons(folder).stopAll(signal);
      if (count > 0) say(`ended ${count} tgtd`);
    } catch (error) {
      // It may still be killed.
      say(`tgtd below ${folder}: ${(error as Error).message}`);
    }
  }
}
