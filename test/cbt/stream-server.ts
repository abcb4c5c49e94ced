/** A room whose snapshot has many ranges, in a process of its own; says on request how large that has become at most. */

import { openRoom, S1, testCertificate } from '#test/cbt/in-process-server';
import { synthetic } from '#test/cbt/memory-changes';

export interface StreamServer {
  socketPath: string;
  tlsPort: number;
  ca: string;
}

export interface Size {
  now: number;
  most: number;
  streams: number;
  /** Streams whose source was begun, and those of which it was closed. */
  opened: number;
  closed: number;
}

const count = Number(process.argv[2]);
const room = await openRoom();
room.log.info = room.log.warn = room.log.error = () => 0;
room.changes.snapshots.set(S1, { ...room.changes.snapshots.get(S1)!, capacityBytes: count * 16_384 });
room.changes.batches = from => synthetic(count, from);
room.overSocket.close();
room.overTls.close();
let most = 0;
setInterval(() => {
  most = Math.max(most, process.memoryUsage.rss());
}, 5);
process.on('message', message => {
  const now = process.memoryUsage.rss();
  if (message === 'reset') most = now;
  const { opened, closed } = room.changes;
  process.send!({ now, most: Math.max(most, now), streams: room.streams.count, opened, closed } satisfies Size);
});
process.on('disconnect', () => void room.close().then(() => process.exit(0)));
process.send!({
  socketPath: room.socketPath,
  tlsPort: room.tlsPort,
  ca: (await testCertificate()).cert,
} satisfies StreamServer);
