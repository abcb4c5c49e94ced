import { closeSync, copyFileSync, existsSync, openSync, readSync, renameSync, statSync, truncateSync } from 'node:fs';
import { CONFIG_LINE, EXIT_CONFIG } from '#platform/config/config';
import { jsonIn } from '../json-in.js';

/** More than there are settings. */
const MANY = 1_000;

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

/**
 * Why a process ended, with its log: of one that refused its configuration just the lines that say so, otherwise the last
 * of this run.
 * @param from where the lines of this run begin
 */
export function explainEnd(how: string, code: number | null, path: string, from: number): string {
  if (code === EXIT_CONFIG) {
    const said = tail(path, MANY, from)
      .split('\n')
      .filter(line => line.startsWith(CONFIG_LINE))
      .map(line => line.slice(CONFIG_LINE.length));
    if (said.length > 0) return `${how}: ${said.join('\n    ')}; log: ${path}`;
  }
  const lines = tail(path, 8, from);
  if (lines === '') return `${how}, and said nothing; log: ${path}`;
  return `${how}: ${tellingLine(tail(path, MANY, from))}; log: ${path}\n${lines.replaceAll(/^/gm, '    ')}`;
}

const TROUBLE =
  /\b(error|fatal|panic|fail(ed|ure)?|cannot|can't|could not|unable|denied|refused|invalid|unknown|no space|in use|not permitted|missing)\b/i;
const LONGEST = 300;

/** That which says what is wrong, the last one of them; else the last of all. JSON lines are cut down to what they say. */
export function tellingLine(text: string): string {
  const lines = text.split('\n').filter(line => line.trim() !== '');
  const line = lines.findLast(each => TROUBLE.test(each)) ?? lines.at(-1) ?? '';
  const { msg, err } =
    (line.startsWith('{') ? jsonIn<{ msg?: string; err?: { message?: string } }>(line) : undefined) ?? {};
  return ([msg, err?.message].filter(Boolean).join(': ') || line.trim()).slice(0, LONGEST);
}
