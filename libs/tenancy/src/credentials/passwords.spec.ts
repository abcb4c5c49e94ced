import { describe, expect, it } from 'vitest';
import { CURRENT_COST, type Derive, Passwords } from '#tenancy/credentials/passwords';

/** Cheap, and real argon2id. */
const CHEAP = { memoryKiB: 8, passes: 1, lanes: 1 };
const verify = (passwords: Passwords, password: string, stored: string | undefined) =>
  passwords.verify(
    password,
    async () => stored,
    async verdict => verdict,
  );

describe('a password', () => {
  it('is kept as a PHC string with the parameters of today, and matches itself alone', async () => {
    const passwords = new Passwords();
    const stored = await passwords.hash('correct horse');
    const { memoryKiB, passes, lanes } = CURRENT_COST;
    expect(stored).toMatch(
      new RegExp(`^\\$argon2id\\$v=19\\$m=${memoryKiB},t=${passes},p=${lanes}\\$[^=$]{22}\\$[^=$]{43}$`),
    );
    expect(stored).not.toContain('correct');
    expect(await verify(passwords, 'correct horse', stored)).toEqual({ matches: true, outdated: false });
    expect(await verify(passwords, 'correct horsf', stored)).toEqual({ matches: false, outdated: false });
    expect(await verify(passwords, '', stored)).toEqual({ matches: false, outdated: false });
  });

  it('has a salt of its own', async () => {
    const passwords = new Passwords(CHEAP);
    expect(await passwords.hash('same')).not.toBe(await passwords.hash('same'));
  });

  it('agrees with the reference implementation', async () => {
    // echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1 -l 24, of the reference implementation's test vectors
    const stored = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc';
    expect(await verify(new Passwords(), 'password', stored)).toEqual({ matches: true, outdated: true });
  });

  it('made with other parameters still matches, and is said to be outdated', async () => {
    const stored = await new Passwords(CHEAP).hash('secret');
    expect(await verify(new Passwords({ ...CHEAP, passes: 2 }), 'secret', stored)).toEqual({
      matches: true,
      outdated: true,
    });
  });

  it('that is stored as something else is a defect, and no match', async () => {
    await expect(verify(new Passwords(CHEAP), 'secret', 'secret')).rejects.toMatchObject({ kind: 'internal' });
  });
});

describe('computations', () => {
  /** Ends when told to. */
  function slow() {
    const state = { running: 0, most: 0, computed: 0, costs: [] as unknown[], release: [] as (() => void)[] };
    const compute: Derive = async (_password, _salt, cost, bytes) => {
      state.computed++;
      state.costs.push(cost);
      state.most = Math.max(state.most, ++state.running);
      await new Promise<void>(resolve => state.release.push(resolve));
      state.running--;
      return Buffer.alloc(bytes);
    };
    return { state, compute };
  }
  const turn = () => new Promise(resolve => setImmediate(resolve));

  it('of nobody’s password are as many and cost as much as of a known one', async () => {
    const { state, compute } = slow();
    const passwords = new Passwords(CHEAP, 2, compute);
    const known = passwords.hash('x');
    await turn();
    state.release.shift()!();
    const before = state.computed;
    const unknown = verify(passwords, 'x', undefined);
    const right = verify(passwords, 'x', await known);
    await turn();
    expect(state.computed - before).toBe(2);
    expect(state.costs.slice(-2)).toEqual([CHEAP, CHEAP]);
    for (const release of state.release) release();
    expect([(await unknown).matches, (await right).matches]).toEqual([false, true]);
  });

  it('run two at once, in the order of the calls; what is looked up is looked up then', async () => {
    const { state, compute } = slow();
    const passwords = new Passwords(CHEAP, 2, compute);
    const looked: number[] = [];
    const all = [0, 1, 2, 3, 4].map(n =>
      passwords.verify(
        'x',
        async () => {
          looked.push(n);
          return undefined;
        },
        async verdict => verdict,
      ),
    );
    await turn();
    expect(looked).toEqual([0, 1]);
    while (state.computed < 5 || state.running > 0) {
      state.release.shift()?.();
      await turn();
    }
    await Promise.all(all);
    expect(looked).toEqual([0, 1, 2, 3, 4]);
    expect(state.most).toBe(2);
  });

  it('free their place when they fail, and refuse a line that is too long', async () => {
    const { state, compute } = slow();
    const passwords = new Passwords(CHEAP, 1, compute);
    await expect(
      passwords.verify(
        'x',
        () => Promise.reject(new Error('gone')),
        async verdict => verdict,
      ),
    ).rejects.toThrow('gone');
    const all = Array.from({ length: 257 }, () => verify(passwords, 'x', undefined));
    await expect(verify(passwords, 'x', undefined)).rejects.toMatchObject({ kind: 'unavailable' });
    while (state.computed < 257 || state.running > 0) {
      state.release.shift()?.();
      await turn();
    }
    expect(await Promise.all(all)).toHaveLength(257);
  });
});
