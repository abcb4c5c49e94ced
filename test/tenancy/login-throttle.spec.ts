import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { LoginThrottled } from '#tenancy/logins/session-directory';
import { LoginHouse, request } from '#test/tenancy/login-house';

/** Guessing gets slower and slower, for an account and for an address; whoever knows the password is let in. */
let house: LoginHouse;
const PASSWORD = 'correct horse';
beforeAll(async () => {
  house = await LoginHouse.create();
  const { users } = await house.tenant('default');
  await users.add('csp', 'operator', PASSWORD);
  await users.add('other', 'operator', PASSWORD);
});
beforeEach(() => house.forgive());
afterAll(() => house?.close());

/** 'in', 'wrong', or the seconds to wait. */
async function attempt(name: string, password: string, address = '192.0.2.1'): Promise<string | number> {
  try {
    await house.sessions().login(request(name, password, { address }));
    return 'in';
  } catch (error) {
    if (error instanceof LoginThrottled) return error.retryAfterSeconds;
    expect(error).toMatchObject({ kind: 'unauthenticated' });
    return 'wrong';
  }
}
/** The account's wait is over; the failures still count. */
const waited = () =>
  house.query("UPDATE trivet.login_throttle SET blocked_until = now() WHERE subject LIKE 'account:%'");
const blocked = async () =>
  house.query<{ subject: string; failures: number }>(
    'SELECT subject, failures FROM trivet.login_throttle WHERE blocked_until > now()',
  );

describe('an account', () => {
  it.each(['csp', 'nobody', 'csp@nowhere'])(
    '%s waits after six failures, longer each time, up to a minute',
    async name => {
      const waits: (string | number)[] = [];
      for (let n = 0; n < 14; n++) {
        await attempt(name, 'wrong', `192.0.2.${n}`);
        const [wait] = await house.query<{ wait: number }>(
          'SELECT round(extract(epoch FROM max(blocked_until - failed_at)))::integer AS wait FROM trivet.login_throttle',
        );
        waits.push(wait!.wait);
        await waited();
      }
      expect(waits).toEqual([0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
    },
  );

  it('that waits refuses the right password, from everywhere, and computes nothing', async () => {
    for (let n = 0; n < 6; n++) expect(await attempt('csp', 'wrong')).toBe('wrong');
    const before = house.computed;
    expect(await attempt('csp', PASSWORD)).toBe(1);
    expect(await attempt('csp@default', PASSWORD, '192.0.2.200')).toBe(1);
    expect(house.computed).toBe(before);
    expect(await attempt('other', PASSWORD)).toBe('in');
  });

  it('begins anew after a success', async () => {
    for (let n = 0; n < 6; n++) await attempt('csp', 'wrong');
    await waited();
    expect(await attempt('csp', PASSWORD)).toBe('in');
    for (let n = 0; n < 5; n++) expect(await attempt('csp', 'wrong')).toBe('wrong');
    expect(await attempt('csp', PASSWORD)).toBe('in');
  });

  it('is forgiven a failure a minute', async () => {
    for (let n = 0; n < 6; n++) await attempt('csp', 'wrong');
    await house.query("UPDATE trivet.login_throttle SET failed_at = failed_at - interval '3 minutes'");
    await waited();
    await attempt('csp', 'wrong');
    expect(await blocked()).toEqual([]);
  });

  it('that is guessed at in parallel gets no more tries than one after the other, but for those under way', async () => {
    const sessions = house.sessions();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 40 }, () => sessions.login(request('csp', 'wrong', { address: '192.0.2.1' }))),
    );
    const tried = outcomes.filter(
      outcome => outcome.status === 'rejected' && !(outcome.reason instanceof LoginThrottled),
    );
    expect(tried.length).toBeGreaterThanOrEqual(6);
    expect(tried.length).toBeLessThanOrEqual(6 + 2);
  });

  it('is not held up by many right logins at once', async () => {
    const outcomes = await Promise.all(Array.from({ length: 30 }, () => attempt('csp', PASSWORD)));
    expect(new Set(outcomes)).toEqual(new Set(['in']));
  });
});

describe('an address', () => {
  it('waits after 21 failures over any accounts, and nobody else does', async () => {
    for (let n = 0; n < 21; n++) expect(await attempt(`guess-${n}`, 'wrong')).toBe('wrong');
    expect(await attempt('csp', PASSWORD)).toBe(1);
    expect(await attempt('csp', PASSWORD, '192.0.2.2')).toBe('in');
  });

  it('is not made to wait by one stale driver that tries for ever', async () => {
    for (let n = 0; n < 40; n++) {
      await attempt('other', 'stale');
      await waited();
    }
    expect(await attempt('csp', PASSWORD)).toBe('in');
  });
});

describe('the table', () => {
  it('holds no name that somebody typed', async () => {
    await attempt('my-secret-password', 'wrong');
    await attempt('My Secret Password!', 'wrong');
    const rows = await house.query<{ subject: string }>('SELECT subject FROM trivet.login_throttle');
    expect(rows.length).toBeGreaterThan(2);
    expect(JSON.stringify(rows).toLowerCase()).not.toContain('secret');
  });

  it('forgets what is a day old', async () => {
    await attempt('nobody', 'wrong');
    await house.query(
      "UPDATE trivet.login_throttle SET failed_at = now() - interval '25 hours', subject = subject || '-old'",
    );
    await attempt('csp', 'wrong');
    const rows = await house.query<{ subject: string }>("SELECT FROM trivet.login_throttle WHERE subject LIKE '%-old'");
    expect(rows).toEqual([]);
  });
});
