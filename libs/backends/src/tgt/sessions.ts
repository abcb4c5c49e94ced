/**
 * Ending sessions so that nothing of the host can still write (invariant I2).
 *
 * tgtd checks initiators at login only, so whoever is in stays in until its connection is closed. A connection that was
 * told to close goes from the list when its last command has ended: gone from the list means that no write is under way.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { TgtClient } from '#backends/tgt/tgt-client';
import { deleteConnection, showConnections, unbindInitiator } from '#backends/tgt/tgt-request';
import { parseConnections, type ShownConnection } from '#backends/tgt/tgt-show';
import { StorageError } from '#platform/errors';

const POLL_MS = 2;

export async function connectionsOf(client: TgtClient, tid: number, signal: AbortSignal): Promise<ShownConnection[]> {
  return parseConnections(await client.ask(showConnections(tid), signal));
}

/**
 * Withdraws the target from `initiators`, then ends every connection that `isUnwanted` and waits until they are gone.
 * Resolves to how many there were.
 */
export async function endConnections(
  client: TgtClient,
  tid: number,
  initiators: readonly string[],
  isUnwanted: (initiator: string) => boolean,
  signal: AbortSignal,
): Promise<number> {
  for (const iqn of initiators) {
    if (isUnwanted(iqn)) await client.tell(unbindInitiator(tid, iqn), signal, 'no initiator');
  }
  const told = new Set<string>();
  for (;;) {
    const left = (await connectionsOf(client, tid, signal)).filter(({ initiator }) => isUnwanted(initiator));
    if (left.length === 0) return told.size;
    for (const { sid, cid } of left) {
      told.add(`${sid}.${cid}`);
      await client.tell(deleteConnection(tid, sid, cid), signal, 'no session', 'no connection');
    }
    await delay(POLL_MS, undefined, { signal }).catch(cause => {
      throw new StorageError('timeout', `target ${tid}: sessions have not ended in time`, { cause });
    });
  }
}
