/**
 * Functions of a C library through koffi, as promises: each call has a thread of libuv's pool until it returns, and cannot
 * be called back. For libraries that answer with a negative errno.
 */
import { createRequire } from 'node:module';
import { getSystemErrorMap } from 'node:util';

type Koffi = typeof import('koffi');

let loaded: Koffi | undefined;

export function koffi(): Koffi {
  loaded ??= createRequire(import.meta.url)('koffi') as Koffi;
  return loaded;
}

/** What only koffi knows how to read; never looked into. */
export type Pointer = object | bigint | null;

/** As Node's own: `code` is the name, e.g. ENOSPC. */
export interface ForeignError extends Error {
  code: string;
  syscall: string;
}

export function foreignError(call: string, errno: number): ForeignError {
  const [code = NOT_NODES[-errno] ?? `E${-errno}`, description = 'error'] = getSystemErrorMap().get(errno) ?? [];
  return Object.assign(new Error(`${code}: ${description}, ${call}`), { code, syscall: call });
}

/** Those of Linux that Node has no name for, and storage libraries answer with. */
const NOT_NODES: Readonly<Record<number, string>> = { 108: 'ESHUTDOWN', 122: 'EDQUOT', 125: 'ECANCELED', 34: 'ERANGE' };

/** Fails with ELIBACC when it is not installed. */
export function openLibrary(file: string): ForeignLibrary {
  try {
    return new ForeignLibrary(file);
  } catch (error) {
    throw Object.assign(new Error(`${file} cannot be loaded`, { cause: error }), {
      code: 'ELIBACC',
      syscall: 'dlopen',
    });
  }
}

/** One library and the functions that were asked of it so far. */
export class ForeignLibrary {
  readonly #library: ReturnType<Koffi['load']>;
  readonly #waiting = new Map<string, (...values: unknown[]) => void>();
  /** What calls under way read and write: nothing of it may be collected meanwhile. */
  readonly #inUse = new Set<readonly unknown[]>();
  readonly #immediate = new Map<string, (...values: unknown[]) => unknown>();

  constructor(file: string) {
    this.#library = koffi().load(file);
  }

  /** At once, on this thread: for what never waits. */
  now<T>(prototype: string, ...values: unknown[]): T {
    const known = this.#immediate.get(prototype) ?? this.#library.func(prototype);
    this.#immediate.set(prototype, known);
    return known(...values) as T;
  }

  /** The answer when it is not negative; else rejects. */
  async call(prototype: string, ...values: unknown[]): Promise<number> {
    const answer = await this.ask(prototype, ...values);
    if (answer < 0) throw foreignError(nameOf(prototype), answer);
    return answer;
  }

  /** The answer, whatever it is. */
  ask(prototype: string, ...values: unknown[]): Promise<number> {
    const run = this.#waiting.get(prototype) ?? this.#library.func(prototype).async;
    this.#waiting.set(prototype, run);
    this.#inUse.add(values);
    return new Promise((resolve, reject) => {
      run(...values, (error: Error | null, answer: number | bigint) => {
        this.#inUse.delete(values);
        if (error) reject(error);
        else resolve(Number(answer));
      });
    });
  }
}

const nameOf = (prototype: string): string => /(\w+)\(/.exec(prototype)?.[1] ?? prototype;
