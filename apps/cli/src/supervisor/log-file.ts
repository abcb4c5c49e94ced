import { closeSync, copyFileSync, existsSync, openSync, readSync, renameSync, statSync, truncateSync } from 'node:fs';

/** A log above this many bytes is moved aside; one older copy is kept. */
const LOG_LIMIT = 32 * 1024 * 1024;

/** Before a start, when nobody has the file open. */
export function rotateClosed(path: string, limit = LOG_LIMIT): void {
  if (existsSync(path) && statSync(path).size > limit) renameSync(path, `${path}.1`);
}

/** While a process appends to it (O_APPEND, so that it goes on at the new end). Lines written meanwhile may be lost. */
export function rotateOpen(path: string, limit = LOG_LIMIT): void {
  if (!existsSync(path) || statSync(path).size <= limit) return;
  copyFileSync(path, `${path}.1`);
  truncateSync(path);
}

/** The last lines of a log, for a message. */
export function tail(path: string, lines = 8, from = 0): string {
  let text = '';
  try {
    const { size } = statSync(path);
    const start = Math.max(from, size - 16_384);
    const buffer = Buffer.alloc(Math.max(0, size - start));
    const file = openSync(path, 'r');
    try {
      readSync(file, buffer, 0, buffer.length, start);
    } finally {
      closeSync(file);
    }
    text = buffer.toString('utf8');
  } catch {
    return '';
  }
  return text.trimEnd().split('\n').slice(-lines).join('\n');
}
