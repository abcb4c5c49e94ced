/**
 * A unit sees the new size of its file while hosts use it (invariant I3).
 *
 * tgtd learns a size only by opening the file anew. Doing that in steps (offline, open, online) answers every command in
 * between with "no medium": with two sessions at work two errors each time. In one request nothing comes in between; but
 * tgtd's I/O threads may just then begin a command, and find the file closed: a medium error in 1 of 8 to 1 of 40 cases
 * with 16 and with 1 command in flight [measured, 200 rounds each].
 *
 * So the unit's queue is held meanwhile, by the means of SCSI itself. A session of our own sends an ORDERED read: tgtd
 * starts it when every earlier command has ended, and starts none after it until its answer has been sent. We take the
 * first bytes, which says that it has started and read its data, and leave the rest, more than the kernel's buffers can
 * hold: tgtd cannot end it. Now no thread touches the file. We have it opened anew, hang up, which ends the read, and
 * everything that waited goes on, some milliseconds later and without an error [0 in 200 rounds each]. If we are killed
 * meanwhile, our connection ends just so.
 */
import { readFile } from 'node:fs/promises';
import { connectionsOf } from '#backends/tgt/sessions';
import type { TgtClient } from '#backends/tgt/tgt-client';
import type { RunningDaemon } from '#backends/tgt/tgt-daemons';
import { updateUnit } from '#backends/tgt/tgt-request';
import { type Visit, type VisitedTarget, visit } from '#backends/tgt/visit';
import { StorageError } from '#platform/errors';

const BLOCK = 512n;
/** Above Linux's own limits for what a sender and a receiver may keep. */
const LEAST_HELD_BYTES = 16n * 1024n * 1024n;

/** Opens `path` anew, between two commands of any session. */
export const reopen = (tid: number, lun: number, path: string) =>
  updateUnit(tid, lun, [
    ['online', '0'],
    ['path', path],
    ['online', '1'],
    ['removable', '0'],
  ]);

export async function growUnit(
  daemon: RunningDaemon,
  client: TgtClient,
  target: VisitedTarget,
  image: { path: string; sizeBytes: bigint },
  signal: AbortSignal,
): Promise<void> {
  const { tid, lun } = target;
  await visit(daemon, client, target, signal, async visitor => {
    const before = await visitor.capacity();
    // Blocks are what a host sees; a rest of a block is not served.
    const wanted = (image.sizeBytes / BLOCK) * BLOCK;
    if (before === wanted) return;
    if (before > wanted) throw new StorageError('failed_precondition', `target ${tid}: the image has shrunk`);
    const busy = (await connectionsOf(client, tid, signal)).length > 1;
    const change = (): Promise<string> => client.ask(reopen(tid, lun, image.path), signal);
    if (busy) await whileHeld(visitor, before, change);
    else await change();
    const after = await visitor.capacity();
    if (after !== wanted) {
      throw new StorageError('unavailable', `target ${tid}: hosts see ${after} bytes instead of ${wanted}`);
    }
  });
}

/**
 * A unit smaller than what must be held cannot be held: then the change is made at once, at the risk above. tgtd refuses
 * to read beyond the size that it knows.
 */
async function whileHeld(visitor: Visit, size: bigint, change: () => Promise<unknown>): Promise<void> {
  const held = await heldBytes();
  if (size < held) {
    await change();
    return;
  }
  const cdb = Buffer.alloc(16);
  cdb.writeUInt8(0x88, 0);
  cdb.writeBigUInt64BE((size - held) / BLOCK, 2);
  cdb.writeUInt32BE(Number(held / BLOCK), 10);
  const holder = await visitor.again();
  let begun: () => void = () => {};
  const hasBegun = new Promise<void>(resolve => {
    begun = resolve;
  });
  const onData = (): void => {
    holder.session.pause();
    begun();
  };
  const answer = holder.run({ cdb, read: Number(held), order: 'ordered', onData });
  answer.catch(() => {});
  try {
    await Promise.race([hasBegun, answer]);
    await change();
  } finally {
    holder.session.destroy();
  }
}

/** More than both ends of a connection can keep for us, in whole blocks. */
async function heldBytes(): Promise<bigint> {
  const most = async (name: string): Promise<bigint> => {
    const text = await readFile(`/proc/sys/net/ipv4/${name}`, 'utf8').catch(() => '');
    return BigInt(text.trim().split(/\s+/)[2] ?? 0);
  };
  const both = (await most('tcp_wmem')) + (await most('tcp_rmem')) + 1024n * 1024n;
  const bytes = both > LEAST_HELD_BYTES ? both : LEAST_HELD_BYTES;
  return (bytes / BLOCK) * BLOCK;
}
