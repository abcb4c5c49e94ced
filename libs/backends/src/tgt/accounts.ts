/**
 * CHAP accounts: global in a tgtd by their name, and bound to targets in slots.
 *
 * Slots must never have a hole. tgtd counts a target's accounts and then looks at as many first slots: behind a hole an
 * account is not found at login, and a `show` follows the empty slot's null pointer and kills the daemon. Unbinding
 * leaves a hole, so only the last slot is ever unbound, also when somebody is killed between two requests; those behind
 * a removed account are unbound with it and bound again, and refused for a millisecond.
 *
 * A target without any account asks nobody to authenticate. So the first slot of a target that wants CHAP is kept by a
 * guard, an account whose password nobody knows: while the others change, whoever comes is refused and never let in.
 */
import { randomBytes } from 'node:crypto';
import type { ChapLogin } from '#backends/tgt/iscsi-login';
import { AccountUses, TargetStates } from '#backends/tgt/target-state';
import type { TgtClient } from '#backends/tgt/tgt-client';
import {
  bindAccount,
  deleteAccount,
  newAccount,
  showAccounts,
  showTargets,
  unbindAccount,
} from '#backends/tgt/tgt-request';
import { parseAccounts, parseTargets } from '#backends/tgt/tgt-show';
import { StorageError } from '#platform/errors';

/** No user's name begins with a slash (see target-check.ts). */
const GUARD = '/guard';

export interface AccountChange {
  tid: number;
  /** As the slots are now. */
  current: readonly string[];
  /** Somebody was interrupted here: there may be records of accounts that are not bound. */
  unsettled: boolean;
  wanted: readonly ChapLogin[];
  /** Another password of a user replaces the old one, also where other targets use it. */
  replace: boolean;
}

/** For holders of the daemon's lock. */
export class Accounts {
  readonly #uses: AccountUses;

  constructor(
    private readonly client: TgtClient,
    private readonly stateFolder: string,
    private readonly signal: AbortSignal,
  ) {
    this.#uses = new AccountUses(stateFolder);
  }

  /** Resolves to the slots afterwards. Refuses with `already_exists` before anything of this target has changed. */
  async apply({ tid, current: before, unsettled, wanted, replace }: AccountChange): Promise<string[]> {
    let current = before;
    for (const login of wanted) {
      if (await this.#provide(login, tid, replace)) current = current.filter(name => name !== login.user);
    }
    const users = wanted.map(login => login.user);
    const slots = users.length === 0 ? [] : [GUARD, ...users];
    const kept = commonSlots(current, users);
    for (const user of current.slice(kept.length).reverse()) await this.#unbind(tid, user);
    if (slots.length > 0) await this.client.tell(newAccount(GUARD, newSecret()), this.signal, 'user exists');
    for (const user of slots) {
      if (kept.includes(user)) continue;
      if (user !== GUARD) await this.#uses.add(user, tid);
      await this.client.tell(bindAccount(tid, user), this.signal, 'user exists');
      kept.push(user);
    }
    const recorded = unsettled ? await this.#uses.usersOf(tid) : [];
    for (const user of new Set([...current, ...recorded])) if (!slots.includes(user)) await this.#release(user, tid);
    return kept;
  }

  /** The account exists with this password. True when it is another one than before, bound nowhere. */
  async #provide({ user, password }: ChapLogin, tid: number, replace: boolean): Promise<boolean> {
    const mark = await this.#uses.markOf(user, password);
    const recorded = await this.#uses.recordedMark(user);
    if (recorded !== mark) {
      const others = (await this.#uses.targetsOf(user)).filter(other => other !== tid);
      if (recorded !== undefined && others.length > 0 && !replace) {
        throw new StorageError('already_exists', 'chap.user: this user has another password on other targets', {
          field: 'chap.user',
        });
      }
      await this.#withdraw(user);
      await this.#uses.record(user, mark);
    }
    await this.client.tell(newAccount(user, password), this.signal, 'user exists');
    return recorded !== mark;
  }

  /** Off all targets, last slot first, and gone; whoever shared one with it is bound again. */
  async #withdraw(user: string): Promise<void> {
    if (!parseAccounts(await this.client.ask(showAccounts(), this.signal)).includes(user)) return;
    const states = new TargetStates(this.stateFolder);
    for (const { tid, accounts } of parseTargets(await this.client.ask(showTargets(), this.signal))) {
      const at = accounts.indexOf(user);
      if (at < 0) continue;
      await states.unsettle(tid);
      for (const name of accounts.slice(at).reverse()) await this.#unbind(tid, name);
      for (const name of accounts.slice(at + 1)) await this.client.ask(bindAccount(tid, name), this.signal);
    }
    for (const tid of await this.#uses.targetsOf(user)) await this.#uses.drop(user, tid);
    await this.client.tell(deleteAccount(user), this.signal, 'no user');
  }

  /** A target is gone: deletes its accounts that nobody else uses. */
  async releaseAll(tid: number): Promise<void> {
    for (const user of await this.#uses.usersOf(tid)) await this.#release(user, tid);
  }

  async #unbind(tid: number, user: string): Promise<void> {
    await this.client.tell(unbindAccount(tid, user), this.signal, 'no user');
  }

  /** Deletes the account when no target uses it any more. */
  async #release(user: string, tid: number): Promise<void> {
    if (user === GUARD) return;
    await this.#uses.drop(user, tid);
    if ((await this.#uses.targetsOf(user)).length > 0) return;
    await this.client.tell(deleteAccount(user), this.signal, 'no user');
    await this.#uses.forget(user);
  }
}

/** The first slots that may stay: the guard, and behind it users that are wanted. */
function commonSlots(current: readonly string[], users: readonly string[]): string[] {
  if (users.length === 0 || current[0] !== GUARD) return [];
  const end = current.findIndex((name, slot) => slot > 0 && !users.includes(name));
  return current.slice(0, end < 0 ? undefined : end);
}

export const newSecret = (): string => randomBytes(12).toString('hex');
