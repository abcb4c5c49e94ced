/** A room with many volumes in a process of its own; says on request how large that has become at most. */
import 'reflect-metadata';
import { openRoom } from '#test/csp/in-process-target';
import { manyVolumes } from '#test/csp/many-volumes';

export interface ListServer {
  url: string;
  username: string;
  password: string;
}

const room = await openRoom();
room.storage.listVolumes = () => manyVolumes(Number(process.argv[2]));
let most = 0;
setInterval(() => {
  most = Math.max(most, process.memoryUsage.rss());
}, 5);
process.on('message', () => {
  process.send!({ now: process.memoryUsage.rss(), most: Math.max(most, process.memoryUsage.rss()) });
});
process.on('disconnect', () => process.exit(0));
const { url, username, password } = room;
process.send!({ url, username, password } satisfies ListServer);
