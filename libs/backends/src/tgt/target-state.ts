/**
 * What the running daemon holds, as last applied from this host.
 *
 * tgtd tells about one target only by telling about all: 40 ms for a thousand, during which it serves no I/O. So each
 * target's settled state is kept in a file beside the daemon; it is removed before the target is changed and written
 * after, and without it everything is asked for. The folder is made anew with each start of the daemon.
 *
 *   targets/<tid>.json     TargetState
 *   users/<tag>/account    UserRecord: which account the tag stands for, and a keyed hash of its password
 *   users/<tag>/<tid>      a target that uses the account
 *   key                    of those hashes
 */
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from '#backends/tgt/daemon-folder';

export interface TargetState {
  iqn: string;
  lun: number;
  path: string;
  serialNumber: string;
  initiators: string[];
  /** Account names in the order of their slots. */
  accounts: string[];
}

interface UserRecord {
  user: string;
  mark: string;
}

export class TargetStates {
  constructor(private readonly folder: string) {}

  /** Undefined when it is not known, or somebody was interrupted while it changed. */
  async read(tid: number): Promise<TargetState | undefined> {
    return readJson<TargetState>(this.#target(tid));
  }

  async unsettle(tid: number): Promise<void> {
    await rm(this.#target(tid), { force: true });
  }

  async settle(tid: number, state: TargetState): Promise<void> {
    await mkdir(join(this.folder, 'targets'), { recursive: true, mode: 0o700 });
    await writeWhole(this.#target(tid), JSON.stringify(state));
  }

  #target(tid: number): string {
    return join(this.folder, 'targets', `${tid}.json`);
  }
}

/** Who uses which account of one daemon. For holders of the daemon's lock. */
export class AccountUses {
  constructor(private readonly folder: string) {}

  /** Equal for equal passwords, during one life of the daemon. */
  async markOf(user: string, password: string): Promise<string> {
    const file = join(this.folder, 'key');
    let key: Buffer | undefined = await readFile(file).catch(() => undefined);
    if (!key) {
      key = randomBytes(32);
      await writeFile(file, key, { mode: 0o600 });
    }
    return createHmac('sha256', key).update(`${user}\0${password}`).digest('hex');
  }

  async recordedMark(user: string): Promise<string | undefined> {
    return (await readJson<UserRecord>(join(this.#user(user), 'account')))?.mark;
  }

  async record(user: string, mark: string): Promise<void> {
    await mkdir(this.#user(user), { recursive: true, mode: 0o700 });
    await writeWhole(join(this.#user(user), 'account'), JSON.stringify({ user, mark } satisfies UserRecord));
  }

  async targetsOf(user: string): Promise<number[]> {
    const names = await readdir(this.#user(user)).catch((): string[] => []);
    return names.filter(name => /^\d+$/.test(name)).map(Number);
  }

  /** Accounts that this target is recorded to use. */
  async usersOf(tid: number): Promise<string[]> {
    const tags = await readdir(join(this.folder, 'users')).catch((): string[] => []);
    const users: string[] = [];
    for (const tag of tags) {
      const names = await readdir(join(this.folder, 'users', tag)).catch((): string[] => []);
      const record = await readJson<UserRecord>(join(this.folder, 'users', tag, 'account'));
      if (record && names.includes(String(tid))) users.push(record.user);
    }
    return users;
  }

  async add(user: string, tid: number): Promise<void> {
    await writeFile(join(this.#user(user), String(tid)), '', { mode: 0o600 });
  }

  async drop(user: string, tid: number): Promise<void> {
    await rm(join(this.#user(user), String(tid)), { force: true });
  }

  async forget(user: string): Promise<void> {
    await rm(this.#user(user), { recursive: true, force: true });
  }

  #user(user: string): string {
    return join(this.folder, 'users', createHash('sha256').update(user).digest('hex').slice(0, 16));
  }
}

async function readJson<T>(path: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as T;
  } catch {
    return undefined;
  }
}
