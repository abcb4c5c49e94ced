import { readFileSync } from 'node:fs';
import { LauncherError } from '../home.js';
import { EXIT } from './api-error.js';

/** An object in JSON from a file, or from standard input (`-`): settings and credentials never stand in arguments. */
export function readJsonFile(option: string, file: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    throw new LauncherError(`${option}: cannot read ${file}: ${(error as NodeJS.ErrnoException).code}`, EXIT.data);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message would quote what may be a secret.
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new LauncherError(`${option}: ${file} does not hold a JSON object`, EXIT.data);
  return value as Record<string, unknown>;
}
