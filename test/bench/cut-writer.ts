/**
 * Writes 4 KiB to a random block of a file, over and over, as a host with one command in flight; says in microseconds how
 * long the slowest one took since it was last asked. A line on stdin asks.
 */
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';

const [, , path, bytes] = process.argv as string[];
const blocks = Math.floor(Number(bytes) / 4096);
const file = await open(path!, 'r+');
const data = Buffer.alloc(4096, 1);
let slowest = 0;
createInterface(process.stdin).on('line', () => {
  process.stdout.write(`${Math.round(slowest * 1000)}\n`);
  slowest = 0;
});
process.stdin.on('end', () => process.exit(0));
process.stdout.write('ready\n');
for (;;) {
  const begin = performance.now();
  await file.write(data, 0, data.length, Math.floor(Math.random() * blocks) * 4096);
  slowest = Math.max(slowest, performance.now() - begin);
}
