/**
 * Stands for a daemon that serves volumes: writes a growing number to the first file, then to the second, for ever. As of
 * one instant the first is therefore equal to the second or one ahead.
 */
import { openSync, writeSync } from 'node:fs';

const files = process.argv.slice(2).map(path => openSync(path, 'r+'));
const number = Buffer.alloc(8);
for (let n = 1n; ; n++) {
  number.writeBigUInt64LE(n);
  for (const file of files) writeSync(file, number, 0, 8, 0);
}
