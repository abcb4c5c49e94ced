/**
 * The certificate that the door shows, in TRIVET_HOME: while one of another authority is being published, a connector that starts
 * anew goes on with the one that readers know.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { Logger } from '#platform/logging/log';
import { DoorKeys, isOver } from './door-keys.js';
import type { KeyFile } from './key-files.js';

export class ShownPair {
  readonly path: string;

  constructor(
    home: string,
    private readonly log: Logger,
  ) {
    this.path = join(home, 'connector', 'door.json');
  }

  /** @param given by the Secret */
  open(given: KeyFile, overlapMs: number, now: number): DoorKeys {
    const kept = this.read();
    const isBefore = kept !== undefined && kept.cert !== given.cert && !isOver(kept.cert, now);
    const keys = new DoorKeys(isBefore ? kept : given, overlapMs, pair => this.keep(pair));
    if (isBefore) keys.use(given, now);
    else this.keep(given);
    return keys;
  }

  private read(): KeyFile | undefined {
    try {
      const { cert, key, ca } = JSON.parse(readFileSync(this.path, 'utf8')) as Partial<KeyFile>;
      if (cert === undefined || key === undefined || ca === undefined) throw new Error('a part is missing');
      createSecureContext({ cert, key });
      return { cert, key, ca };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        this.log.warn({ file: this.path, reason: 'unreadable' }, 'what the door showed before is not known');
      return undefined;
    }
  }

  /** Without it the door works all the same. */
  private keep(pair: KeyFile): void {
    const temporary = join(dirname(this.path), `.${randomUUID()}.json`);
    try {
      mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
      writeFileSync(temporary, JSON.stringify(pair), { mode: 0o600, flush: true });
      renameSync(temporary, this.path);
    } catch (error) {
      this.log.warn({ err: error, file: this.path }, 'what the door shows cannot be kept for the next start');
    } finally {
      rmSync(temporary, { force: true });
    }
  }
}
