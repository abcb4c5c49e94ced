import { readFileSync } from 'node:fs';
import { LauncherError } from '../home.js';
import { jsonIn } from '../json-in.js';
import { EXIT } from './api-error.js';

/** A file, or standard input (`-`): secrets never stand in arguments. `option`: which one names it. */
export function readGiven(file: string, option?: string, exitCode: number = EXIT.data): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    const why = `cannot read ${file}: ${(error as NodeJS.ErrnoException).code ?? error}`;
    throw new LauncherError(option === undefined ? why : `${option}: ${why}`, exitCode);
  }
}

/** An object in JSON: settings or credentials. */
export function readJsonFile(option: string, file: string): Record<string, unknown> {
  const value = jsonIn<unknown>(readGiven(file, option));
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new LauncherError(`${option}: ${file} does not hold a JSON object`, EXIT.data);
  return value as Record<string, unknown>;
}
