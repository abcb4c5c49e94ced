import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isUuid, uuidv7 } from '#platform/uuid';
import { SnapshotSessionManager } from '#storage/block/sessions/session-manager';
import { MAX_SESSIONS, type SessionView } from '#storage/block/sessions/snapshot-session';
import { SessionHouse, type SessionTenant } from '#test/cbt-sessions/session-house';

/** How much time is left is less at each look. */
const atAnyTime = ({ remainingMs, ...session }: SessionView) => {
  expect(remainingMs).toBeGreaterThan(0);
  return session;
};

let house: SessionHouse;
let acme: SessionTenant;
let other: SessionTenant;
let volume: string;
let snapshot: string;
beforeAll(async () => {
  house = await SessionHouse.create();
  acme = await house.tenant('acme');
  other = await house.tenant('other');
  volume = await house.volume(acme);
  snapshot = await house.snapshot(volume, 'monday');
});
afterAll(() => house?.close());

const expire = (id: string) =>
  house.query("UPDATE trivet.snapshot_session SET expires_at = now() - interval '1 s' WHERE id = $1", [id]);
const secretsOf = (id: string) => house.query('SELECT FROM trivet.secret WHERE owner_id = $1', [id]);

describe('a session', () => {
  it('becomes ready with a token of legal letters, a driver and an expiry', async () => {
    const session = await house.service({ ttlMs: 90_000 }).create(acme, { snapshots: [snapshot, 'monday'] });
    expect(session).toMatchObject({ state: 'ready', driver: 'csi.hpe.com', snapshots: [snapshot, 'monday'] });
    expect(session.token).toMatch(/^[a-z0-9]{52}$/);
    expect(session.name).toMatch(/^session-[0-9a-f]{12}$/);
    expect(session.expiresAt.getTime() - session.createdAt.getTime()).toBe(90_000);
  });

  it('is what was asked for: its name, its time', async () => {
    const session = await house.service().create(acme, { name: 'nightly.1', snapshots: ['monday'], ttlMs: 5_000 });
    expect(session.name).toBe('nightly.1');
    expect(session.expiresAt.getTime() - session.createdAt.getTime()).toBe(5_000);
  });

  it('covers its snapshots by id and by name, and nothing else', async () => {
    const tuesday = await house.snapshot(volume, 'tuesday');
    const service = house.service();
    const { token } = await service.create(acme, { snapshots: [snapshot] });
    const session = (await service.authenticate(token!))!;
    expect(session).toMatchObject({ tenantId: acme.tenantId, tenantName: 'acme', driver: 'csi.hpe.com' });
    expect(session.resolve({ id: snapshot })).toBe(snapshot);
    expect(session.resolve({ name: 'monday' })).toBe(snapshot);
    expect(session.resolve({ volumeId: volume, name: 'monday' })).toBe(snapshot);
    for (const key of [{ id: tuesday }, { name: 'tuesday' }, { volumeId: uuidv7(), name: 'monday' }, { id: '' }])
      expect(session.covers(key)).toBe(false);
  });

  it('means by a name the snapshot that had it, when another one has it today', async () => {
    const first = await house.snapshot(volume, 'reused');
    const service = house.service();
    const { token } = await service.create(acme, { snapshots: ['reused'] });
    await house.query("UPDATE trivet.snapshot SET state = 'gone' WHERE id = $1", [first]);
    await house.snapshot(volume, 'reused');
    expect((await service.authenticate(token!))!.resolve({ name: 'reused' })).toBe(first);
  });

  it('tells snapshots of one name in several volumes apart by id and by volume', async () => {
    const volumes = [await house.volume(acme), await house.volume(acme)];
    const ids = [await house.snapshot(volumes[0]!, 'twin'), await house.snapshot(volumes[1]!, 'twin')];
    const service = house.service();
    expect(await service.create(acme, { snapshots: ['twin'] })).toMatchObject({
      state: 'failed',
      error: 'several volumes have a snapshot of the name twin: give its id',
    });
    const { token } = await service.create(acme, { snapshots: ids });
    const session = (await service.authenticate(token!))!;
    expect(session.resolve({ name: 'twin' })).toBeUndefined();
    expect(session.resolve({ volumeId: volumes[1]!, name: 'twin' })).toBe(ids[1]);
  });

  it('may name a deleted snapshot by its id, but not by its name', async () => {
    const service = house.service();
    for (const state of ['deleting', 'gone']) {
      const base = await house.snapshot(volume, `base-${state}`, state);
      const { token } = await service.create(acme, { snapshots: [base, 'monday'] });
      expect((await service.authenticate(token!))!.covers({ id: base })).toBe(true);
      expect(await service.create(acme, { snapshots: [`base-${state}`] })).toMatchObject({
        state: 'failed',
        error: `snapshot base-${state} does not exist`,
      });
    }
  });
});

describe('a session fails', () => {
  it.each([
    ['nobody has made', async () => 'never'],
    ['an unknown id', async () => '019f0000-0000-7000-8000-000000000000'],
    ['another tenant’s', async () => house.snapshot(await house.volume(other), 'theirs')],
    ['hidden', () => house.snapshot(volume, 'hidden', 'ready', true)],
    ['of a deleted volume', async () => house.snapshot(await house.volume(acme, undefined, 'binned'), 'in-the-bin')],
  ])('over a snapshot that is %s', async (_, make) => {
    const asked = await make();
    const service = house.service();
    const session = await service.create(acme, { snapshots: ['monday', asked] });
    expect(session).toMatchObject({ state: 'failed', error: `snapshot ${asked} does not exist` });
    expect(session.token).toBeUndefined();
    expect(await secretsOf(session.id)).toEqual([]);
  });

  it('over a snapshot that has left the chain of changes, and says what happened', async () => {
    const id = await house.snapshot(volume, 'forgotten', 'gone');
    await house.query('UPDATE trivet.snapshot SET cut = NULL WHERE id = $1', [id]);
    expect(await house.service().create(acme, { snapshots: [id, 'monday'] })).toMatchObject({
      state: 'failed',
      error: `snapshot ${id} was deleted, and what changed since it is not known any more: do a full backup`,
    });
  });

  it('over a snapshot that is still being made', async () => {
    await house.snapshot(volume, 'slow', 'creating');
    expect(await house.service().create(acme, { snapshots: ['slow'] })).toMatchObject({
      state: 'failed',
      error: 'snapshot slow is not ready: it is still being made',
    });
  });

  it('over snapshots of several drivers, and of none', async () => {
    await house.snapshot(await house.volume(acme, acme.backends.other), 'elsewhere');
    await house.snapshot(await house.volume(acme, acme.backends.bare), 'unserved');
    const service = house.service();
    expect((await service.create(acme, { snapshots: ['monday', 'elsewhere'] })).error).toBe(
      'the snapshots are of several drivers (csi.hpe.com, other.example.com): open a session for each',
    );
    expect((await service.create(acme, { snapshots: ['elsewhere'] })).driver).toBe('other.example.com');
    expect((await service.create(acme, { snapshots: ['unserved'] })).error).toBe(
      'no service for changed blocks is configured for backends of bare',
    );
  });
});

describe('a request', () => {
  it.each([
    ['snapshots', { snapshots: [] }],
    ['snapshots', { snapshots: Array(257).fill('monday') }],
    ['snapshots.1', { snapshots: ['monday', ' '] }],
    ['snapshots.0', { snapshots: ['a\u0000b'] }],
    ['snapshots.0', { snapshots: ['\ud800'] }],
    ['name', { name: 'Upper', snapshots: ['monday'] }],
    ['name', { name: '-x', snapshots: ['monday'] }],
    ['name', { name: 'x'.repeat(254), snapshots: ['monday'] }],
    ['ttlSeconds', { snapshots: ['monday'], ttlMs: 999 }],
    ['ttlSeconds', { snapshots: ['monday'], ttlMs: 86_400_001 }],
    ['ttlSeconds', { snapshots: ['monday'], ttlMs: Number.NaN }],
  ])('is refused for its %s', async (field, request) => {
    await expect(house.service().create(acme, request)).rejects.toMatchObject({ kind: 'invalid_argument', field });
  });

  it('repeated answers the session that it made; another one of the name is refused', async () => {
    const service = house.service();
    const request = { name: 'repeated', snapshots: ['monday'] };
    const first = await service.create(acme, request);
    expect(atAnyTime(await house.service().create(acme, request))).toEqual(atAnyTime(first));
    const taken = { kind: 'already_exists' };
    await expect(service.create(acme, { ...request, snapshots: [snapshot] })).rejects.toMatchObject(taken);
    await expect(service.create(acme, { ...request, ttlMs: 5_000 })).rejects.toMatchObject(taken);
    await expect(service.create(acme.colleague, request)).rejects.toMatchObject(taken);
    await service.delete(acme, 'repeated');
    expect((await service.create(acme, request)).id).not.toBe(first.id);
  });

  it('gets the name of a session that has expired and was not reaped yet', async () => {
    const service = house.service();
    const first = await service.create(acme, { name: 'again', snapshots: ['monday'] });
    await expire(first.id);
    const second = await service.create(acme, { name: 'again', snapshots: [snapshot] });
    expect(second).toMatchObject({ state: 'ready', snapshots: [snapshot] });
    expect(await secretsOf(first.id)).toEqual([]);
    expect(await service.authenticate(first.token!)).toBeUndefined();
  });

  const crowded = async (name: string, failed: number): Promise<SessionTenant> => {
    const crowd = await house.tenant(name);
    await house.query(
      `INSERT INTO trivet.snapshot_session (tenant_id, id, name, state, ttl_ms, created_at, expires_at)
       SELECT $1, gen_random_uuid(), 's' || n, CASE WHEN n <= $3 THEN 'failed' ELSE 'pending' END, 1000,
              now() - interval '1 hour' + n * interval '1 s', now() + interval '1 hour' FROM generate_series(1, $2) n`,
      [crowd.tenantId, MAX_SESSIONS, failed],
    );
    return crowd;
  };

  it('is refused when a tenant has very many', async () => {
    const full = house.service().create(await crowded('crowd', 0), { name: 'too-many', snapshots: ['x'] });
    await expect(full).rejects.toMatchObject({ kind: 'resource_exhausted' });
    expect(await house.query("SELECT FROM trivet.snapshot_session WHERE name = 'too-many'")).toEqual([]);
  });

  it('takes the place of the oldest one that failed, whose name is free then', async () => {
    const crowd = await crowded('failures', 2);
    const service = house.service();
    const names = async () => {
      const looked = 'SELECT name FROM trivet.snapshot_session WHERE tenant_id = $1';
      return (await house.query<{ name: string }>(looked, [crowd.tenantId])).map(({ name }) => name);
    };
    expect(await service.create(crowd, { name: 'first', snapshots: ['x'] })).toMatchObject({ state: 'failed' });
    const left = await names();
    expect(left).toHaveLength(MAX_SESSIONS);
    expect(left).toEqual(expect.arrayContaining(['s2', 'first']));
    expect(left).not.toContain('s1');
    // It fails itself, and so gives way in its turn: a thousand that fail hold up nobody.
    for (const name of ['s1', 'second', 'third']) await service.create(crowd, { name, snapshots: ['x'] });
    expect(await names()).toHaveLength(MAX_SESSIONS);
  });
});

describe('who sees a session', () => {
  it('is its tenant, by id and by name, with the token for its creator alone', async () => {
    const service = house.service();
    const made = await service.create(acme, { name: 'mine', snapshots: ['monday'] });
    const view = atAnyTime(made);
    expect(atAnyTime(await service.get(acme, 'mine'))).toEqual(view);
    expect(atAnyTime(await service.get(acme, made.id))).toEqual(view);
    expect(atAnyTime(await service.get(acme.colleague, 'mine'))).toEqual({ ...view, token: undefined });
    expect((await service.list(acme)).filter(({ id }) => id === made.id).map(atAnyTime)).toEqual([view]);
    expect((await service.list(acme.colleague)).every(({ token }) => token === undefined)).toBe(true);
  });

  it('is nobody else', async () => {
    const service = house.service();
    const made = await service.create(acme, { name: 'private', snapshots: ['monday'] });
    for (const key of [made.id, 'private', '', 'Ä', "' OR true"]) {
      await expect(service.get(other, key)).rejects.toMatchObject({ kind: 'not_found' });
      await expect(service.delete(other, key)).rejects.toMatchObject({ kind: 'not_found' });
    }
    expect(await service.list(other)).toEqual([]);
    expect(await service.authenticate(made.token!)).toBeDefined();
  });
});

describe('a token', () => {
  it('is stored as its hash, and sealed', async () => {
    const { id, token } = await house.service().create(acme, { snapshots: ['monday'] });
    const [row] = await house.query<{ hash: Buffer }>(
      'SELECT token_hash AS hash FROM trivet.snapshot_session WHERE id = $1',
      [id],
    );
    expect(row!.hash).toEqual(createHash('sha256').update(token!).digest());
    const [secret] = await house.query<{ sealed: Buffer }>('SELECT sealed FROM trivet.secret WHERE owner_id = $1', [
      id,
    ]);
    expect(secret!.sealed.includes(token!)).toBe(false);
  });

  it('outlives the process that made it', async () => {
    const { token } = await house.service().create(acme, { snapshots: ['monday'] });
    expect((await house.service().authenticate(token!))!.covers({ id: snapshot })).toBe(true);
  });

  it('that is unknown or malformed stands for nothing', async () => {
    const service = house.service();
    for (const token of ['', 'a', 'a'.repeat(52), 'A'.repeat(52), 'ä'.repeat(52), '\u0000'])
      expect(await service.authenticate(token)).toBeUndefined();
  });

  it.each([
    ['its session expires', (id: string) => expire(id), () => Promise.resolve([])],
    ['its session is deleted elsewhere', (id: string) => house.service().delete(acme, id), () => Promise.resolve([])],
    [
      'its creator is disabled',
      () => house.query("UPDATE trivet.tenant_user SET state = 'disabled' WHERE id = $1", [acme.userId]),
      () => house.query("UPDATE trivet.tenant_user SET state = 'active' WHERE id = $1", [acme.userId]),
    ],
  ])('ends within 5 s when %s', async (_, change, undo) => {
    let now = 0;
    const service = house.service({ clock: () => now });
    const { id, token } = await service.create(acme, { snapshots: ['monday'] });
    expect(await service.authenticate(token!)).toBeDefined();
    try {
      await change(id);
      now = 4_999;
      expect(await service.authenticate(token!)).toBeDefined();
      now = 5_000;
      expect(await service.authenticate(token!)).toBeUndefined();
    } finally {
      await undo();
    }
  });

  it('of a suspended tenant says that it is one', async () => {
    const service = house.service();
    const { token } = await service.create(acme, { snapshots: ['monday'] });
    await house.query("UPDATE trivet.tenant SET state = 'suspended' WHERE name = 'acme'");
    try {
      await expect(service.authenticate(token!)).rejects.toMatchObject({ kind: 'permission_denied' });
    } finally {
      await house.query("UPDATE trivet.tenant SET state = 'active' WHERE name = 'acme'");
    }
    expect(await service.authenticate(token!)).toBeDefined();
  });

  it('is not remembered beyond its expiry', async () => {
    let now = 0;
    const service = house.service({ clock: () => now });
    const { id, token } = await service.create(acme, { snapshots: ['monday'], ttlMs: 2_000 });
    expect(await service.authenticate(token!)).toBeDefined();
    await expire(id);
    now = 2_000;
    expect(await service.authenticate(token!)).toBeUndefined();
  });

  it('ends at once where its session is deleted, also while it is being looked up', async () => {
    const service = house.service();
    const first = await service.create(acme, { snapshots: ['monday'] });
    expect(await service.authenticate(first.token!)).toBeDefined();
    await service.delete(acme, first.id);
    expect(await service.authenticate(first.token!)).toBeUndefined();

    const { promise: found, resolve: isFound } = Promise.withResolvers<void>();
    const { promise: mayGoOn, resolve: goOn } = Promise.withResolvers<void>();
    const slow = house.service({
      after: async ({ name }) => {
        if (name !== 'snapshot_session_find') return;
        isFound();
        await mayGoOn;
      },
    });
    const second = await slow.create(acme, { snapshots: ['monday'] });
    const looked = slow.authenticate(second.token!);
    await found;
    await slow.delete(acme, second.id);
    goOn();
    await looked;
    expect(await slow.authenticate(second.token!)).toBeUndefined();
  });
});

describe('a session whose process died before it was decided', () => {
  const abandoned = async (name: string): Promise<void> => {
    let transactions = 0;
    const dying = house.service({
      before: () => {
        if (++transactions > 1) throw new Error('killed');
      },
    });
    await expect(dying.create(acme, { name, snapshots: ['monday'] })).rejects.toThrow('killed');
    expect(await house.query('SELECT state FROM trivet.snapshot_session WHERE name = $1', [name])).toEqual([
      { state: 'pending' },
    ]);
  };

  it('is decided by the next look at it', async () => {
    await abandoned('left-1');
    expect(await house.service().get(acme, 'left-1')).toMatchObject({ state: 'ready' });
    await abandoned('left-2');
    expect((await house.service().list(acme)).find(({ name }) => name === 'left-2')).toMatchObject({ state: 'ready' });
    await abandoned('left-3');
    const repeated = await house.service().create(acme, { name: 'left-3', snapshots: ['monday'] });
    expect(repeated.token).toMatch(/^[a-z0-9]{52}$/);
  });

  it('is decided once, however many look', async () => {
    await abandoned('left-4');
    const service = house.service();
    const looks = await Promise.all(Array.from({ length: 4 }, () => service.get(acme, 'left-4')));
    expect(new Set(looks.map(({ token }) => token)).size).toBe(1);
  });

  it('is decided by a worker’s round, which removes what has expired with its secrets', async () => {
    await abandoned('left-5');
    const service = house.service();
    const old = await service.create(acme, { name: 'old', snapshots: ['monday'] });
    await expire(old.id);
    await expect(service.get(acme, 'old')).rejects.toMatchObject({ kind: 'not_found' });
    await new SnapshotSessionManager(house.database, house.service()).run(AbortSignal.timeout(20_000));
    const states = await house.query("SELECT name, state FROM trivet.snapshot_session WHERE name IN ('left-5', 'old')");
    expect(states).toEqual([{ name: 'left-5', state: 'ready' }]);
    expect(await secretsOf(old.id)).toEqual([]);
    expect(await house.query('SELECT FROM trivet.snapshot_session_member WHERE session_id = $1', [old.id])).toEqual([]);
  });
});

it('ids of sessions are uuids, so that no name of ours is mistaken for one', async () => {
  const { id, name } = await house.service().create(acme, { snapshots: ['monday'] });
  expect([isUuid(id), isUuid(name)]).toEqual([true, false]);
});
