import { readFile } from 'node:fs/promises';
import { createServer, connect as dial, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { requireSchema } from '#platform/schema/schema-version';
import { uuidv7 } from '#platform/uuid';
import { createDatabase, type TestDatabase } from '#test/support/database';
import { until } from '#test/support/parts';

let own: TestDatabase;
let database: Database;
const TENANT = uuidv7();
const [FIRST, SECOND] = [uuidv7(), uuidv7()];

beforeAll(async () => {
  own = await createDatabase();
  database = await Database.connect({ appUrl: own.appUrl, engineUrl: own.engineUrl, applicationName: 'trivet:test' });
  await own.query("INSERT INTO trivet.tenant (id, name) VALUES ($1, 'one')", [TENANT]);
  for (const [id, name] of [
    [FIRST, 'first'],
    [SECOND, 'second'],
  ])
    await own.query(
      "INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, $3, 'fake', '{}')",
      [TENANT, id, name],
    );
});
afterAll(async () => {
  await database?.close();
  await own?.drop();
});

const BACKENDS = sql('test_backends', 'SELECT id, name FROM trivet.backend ORDER BY name');
const RENAME = sql('test_rename', 'UPDATE trivet.backend SET name = $2 WHERE id = $1');
const TOUCH = sql('test_touch', 'UPDATE trivet.backend SET version = version + 1 WHERE id = $1 RETURNING version');
const INSERT = sql(
  'test_insert',
  "INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, $3, 'fake', '{}')",
);
const PID = sql('test_pid', 'SELECT pg_backend_pid() AS pid');
const NOTIFY = sql('test_notify', "SELECT pg_notify('test_channel', $1)");
const versionOf = async (id: string) =>
  (await own.query<{ version: number }>('SELECT version FROM trivet.backend WHERE id = $1', [id]))[0]!.version;
const caught = (work: Promise<unknown>): Promise<StorageError> =>
  work.then(
    () => Promise.reject(new Error('it did not fail')),
    error => error,
  );

/** Stands before PostgreSQL, and passes on what `pass` lets it. */
async function gateBefore(target: string, pass: (chunk: Buffer, near: Socket) => boolean) {
  const { hostname, port } = new URL(target);
  const gate = createServer(near => {
    const far = dial(Number(port), hostname);
    near.on('data', chunk => {
      if (pass(chunk, near)) far.write(chunk);
    });
    far.on('data', chunk => near.write(chunk));
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on('error', () => {});
      one.on('close', () => other.destroy());
    }
  });
  await new Promise<void>(resolve => gate.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.port = String((gate.address() as { port: number }).port);
  return { gate, url: url.href };
}

describe('a transaction of a tenant', () => {
  it('sees that tenant, and the next use of its connection sees none', async () => {
    expect(await database.withTenant(TENANT, tx => tx.query(BACKENDS))).toHaveLength(2);
    expect(await database.withTenant(uuidv7(), tx => tx.query(BACKENDS))).toEqual([]);
    expect(await database.call(BACKENDS, [])).toEqual([]);
  });

  it('takes no tenant that is not a uuid: the name of a tenant stands in a statement', async () => {
    const error = await caught(database.withTenant(`${TENANT}'; SELECT '`, tx => tx.query(BACKENDS)));
    expect(error).toMatchObject({ kind: 'internal' });
  });

  it('is undone as a whole when its work fails, whoever failed', async () => {
    const failing = database.withTenant(TENANT, async tx => {
      await tx.query(RENAME, [FIRST, 'renamed']);
      throw new StorageError('aborted', 'on second thought');
    });
    expect(await caught(failing)).toMatchObject({ kind: 'aborted', message: 'on second thought' });
    expect((await database.withTenant(TENANT, tx => tx.query<{ name: string }>(BACKENDS))).map(b => b.name)).toEqual([
      'first',
      'second',
    ]);
  });

  it('is run again when it met another one in a deadlock', async () => {
    const before = [await versionOf(FIRST), await versionOf(SECOND)];
    let arrived = 0;
    const both = async (ids: string[]) =>
      database.withTenant(TENANT, async tx => {
        await tx.query(TOUCH, [ids[0]]);
        arrived++;
        await until('both hold one row', () => arrived >= 2);
        await tx.query(TOUCH, [ids[1]]);
      });
    await Promise.all([both([FIRST, SECOND]), both([SECOND, FIRST])]);
    expect(arrived).toBe(3);
    expect([await versionOf(FIRST), await versionOf(SECOND)]).toEqual(before.map(version => version + 2));
  });

  it("gives its connection back, whatever happened to it, and says nothing in the database's own words", async () => {
    const doubled = await caught(database.withTenant(TENANT, tx => tx.query(INSERT, [TENANT, FIRST, 'third'])));
    expect(doubled).toMatchObject({ kind: 'aborted', retry: 'later' });
    expect(JSON.stringify(doubled)).not.toMatch(/duplicate|constraint|backend_pkey|first/i);
    const foreign = await caught(database.withTenant(TENANT, tx => tx.query(INSERT, [uuidv7(), uuidv7(), 'x'])));
    expect(foreign).toMatchObject({ kind: 'internal' });
    expect(JSON.stringify(foreign)).not.toMatch(/row-level|policy/i);
    for (let n = 0; n < 30; n++) {
      await caught(
        database.withTenant(TENANT, async tx => {
          const [row] = await tx.query<{ pid: number }>(PID);
          await own.query('SELECT pg_terminate_backend($1)', [row!.pid]);
          await until('it is gone', async () => {
            return (await own.query('SELECT FROM pg_stat_activity WHERE pid = $1', [row!.pid])).length === 0;
          });
          await tx.query(BACKENDS);
        }),
      ).then(error => expect(error).toMatchObject({ kind: 'unavailable', retry: 'later' }));
    }
    expect(await database.withTenant(TENANT, tx => tx.query(BACKENDS))).toHaveLength(2);
  });
});

describe('bytes as they are', () => {
  const BYTES = sql(
    'test_bytes',
    `SELECT $1::int, decode($2, 'hex'), convert_to($3, 'UTF8') UNION ALL SELECT 2, '', '' ORDER BY 1`,
  );
  const NAMES = sql('test_copied_names', 'SELECT name FROM trivet.backend ORDER BY name');
  const all = Buffer.from(Array.from({ length: 100_000 }, (_, n) => (n * 31) % 256));
  const copied = async (query: typeof BYTES, params: (string | number)[], tenant = TENANT): Promise<string[][]> => {
    const rows: string[][] = [];
    const keep = (fields: Buffer[]) => void rows.push(fields.map(field => field.toString('hex')));
    await database.withTenant(tenant, tx => tx.copy(query, params, keep));
    return rows;
  };

  it('come row by row, whatever is in them and in the parameters', async () => {
    const odd = `it's "$1", $2\\'); DROP TABLE x; --`;
    expect(await copied(BYTES, [1, all.toString('hex'), odd])).toEqual([
      ['00000001', all.toString('hex'), Buffer.from(odd).toString('hex')],
      ['00000002', '', ''],
    ]);
  });

  it('are of the one tenant', async () => {
    expect(await copied(NAMES, [])).toHaveLength(2);
    expect(await copied(NAMES, [], uuidv7())).toEqual([]);
  });

  it('fail as other statements do, on either side, and leave the connection as it was', async () => {
    expect(await caught(copied(sql('', 'SELECT 1 / (2 - n)::int FROM generate_series(1, 2) n'), []))).toMatchObject({
      kind: 'internal',
      message: 'the database refused a statement',
    });
    expect(await caught(copied(sql('', 'SELECT NULL::int'), []))).toMatchObject({ message: 'a field is NULL' });
    const refusing = database.withTenant(TENANT, tx =>
      tx.copy(NAMES, [], () => {
        throw new StorageError('aborted', 'on second thought');
      }),
    );
    expect(await caught(refusing)).toMatchObject({ kind: 'aborted', message: 'on second thought' });
    expect(await copied(NAMES, [])).toHaveLength(2);
  });
});

describe('the door', () => {
  it('says unavailable where no database is', async () => {
    const url = 'postgresql://nobody:nothing@127.0.0.1:1/none';
    const error = await caught(Database.connect({ appUrl: url, applicationName: 'trivet:test' }));
    expect(error).toMatchObject({ kind: 'unavailable' });
    expect(error.message).not.toContain('nothing');
  });

  it('has no engine role unless it was given one', async () => {
    const gateway = await Database.connect({ appUrl: own.appUrl, applicationName: 'trivet:test', poolSize: 1 });
    try {
      expect(await caught(gateway.engine(BACKENDS))).toMatchObject({ kind: 'internal' });
    } finally {
      await gateway.close();
    }
  });

  it('is not ready before an older schema', async () => {
    await requireSchema(database);
    const kept = await own.query<{ timestamp: string }>('SELECT timestamp FROM trivet.migration');
    await own.query('UPDATE trivet.migration SET "timestamp" = "timestamp" - 1');
    try {
      expect(await caught(requireSchema(database))).toMatchObject({ kind: 'unavailable' });
    } finally {
      await own.query('UPDATE trivet.migration SET "timestamp" = "timestamp" + 1');
    }
    expect(await own.query('SELECT timestamp FROM trivet.migration')).toEqual(kept);
    await requireSchema(database);
  });
});

describe('listening', () => {
  it('comes back by itself, says so, and hears again; after its stop it is silent', async () => {
    const heard: string[] = [];
    let connects = 0;
    const listener = database.listen(
      ['test_channel'],
      (channel, payload) => heard.push(`${channel} ${payload}`),
      () => {
        connects++;
      },
    );
    await until('it listens', () => connects === 1);
    await database.call(NOTIFY, ['one']);
    await until('it hears', () => heard.length === 1);
    for (let round = 2; round < 5; round++) {
      const pids = await own.query<{ pid: number }>(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN test_channel'",
      );
      expect(pids).toHaveLength(1);
      await own.query('SELECT pg_terminate_backend($1)', [pids[0]!.pid]);
      await until('it listens again', () => connects === round);
      await database.call(NOTIFY, [`round ${round}`]);
      await until('it hears again', () => heard.includes(`test_channel round ${round}`));
    }
    expect(listener.connected()).toBe(true);
    await listener.stop();
    await database.call(NOTIFY, ['too late']);
    await until('its connection is gone', async () => {
      const text = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN test_channel'";
      return (await own.query(text)).length === 0;
    });
    expect(heard).not.toContain('test_channel too late');
  });

  it('has one connection for all, each hears its own, and who leaves silences nobody else', async () => {
    const heard: string[] = [];
    const connected: string[] = [];
    const listen = (name: string, channels: string[]) =>
      database.listen(
        channels,
        (channel, payload) => heard.push(`${name}: ${channel} ${payload}`),
        () => connected.push(name),
      );
    const connections = async () =>
      (await own.query("SELECT FROM pg_stat_activity WHERE datname = current_database() AND query ~ '^(UN)?LISTEN'"))
        .length;
    const notify = async (payload: string) => {
      for (const channel of ['test_channel', 'test_other'])
        await database.call(sql('test_notify_channel', 'SELECT pg_notify($1, $2)'), [channel, payload]);
    };
    const one = listen('one', ['test_channel']);
    await until('the first listens', () => one.connected());
    const both = listen('both', ['test_channel', 'test_other']);
    const none = listen('none', []);
    await until('all listen', () => both.connected() && none.connected());
    expect([connected, await connections()]).toEqual([['one', 'both', 'none'], 1]);
    await notify('first');
    await until('all have heard', () => heard.length === 3);
    expect(heard.sort()).toEqual(['both: test_channel first', 'both: test_other first', 'one: test_channel first']);
    await both.stop();
    await own.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^(UN)?LISTEN'");
    await until('they are back', () => connected.length === 5);
    await notify('second');
    await until('it hears again', () => heard.length === 4);
    expect([heard.at(-1), connected.slice(3).sort()]).toEqual(['one: test_channel second', ['none', 'one']]);
    await Promise.all([one.stop(), none.stop()]);
    await until('the connection is gone', async () => (await connections()) === 0);
  });
});

describe('a connection on which nothing comes', () => {
  it('is asked for within seconds whether anybody is there still', async () => {
    const [row] = await database.call<{ port: number }>(sql('test_port', 'SELECT inet_client_port() AS port'), []);
    const local = `:${row!.port.toString(16).toUpperCase().padStart(4, '0')}`;
    /** Of the kernel: 02 is the timer of keepalive, and then come the hundredths of a second that are left. */
    const timer = await until('it is idle', async () => {
      const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map(line => line.trim().split(/\s+/));
      return lines.find(([, from]) => from?.endsWith(local))?.[5]?.match(/^02:(\w+)$/)?.[1];
    });
    expect(Number.parseInt(timer!, 16)).toBeLessThanOrEqual(10 * 100);
  });
});

describe('a server that takes a statement and never answers', () => {
  it('is unavailable after a while, and asked over a new connection then', async () => {
    let isDeaf = false;
    const { gate, url } = await gateBefore(own.appUrl, () => !isDeaf);
    const applicationName = 'trivet:deaf';
    const heard = await Database.connect({ appUrl: url, applicationName, poolSize: 1, answerMs: 1_500 });
    try {
      await heard.call(PID, []);
      isDeaf = true;
      expect(await caught(heard.call(PID, []))).toMatchObject({ kind: 'unavailable' });
      isDeaf = false;
      const inside = () => heard.withTenant(TENANT, tx => tx.query(BACKENDS));
      expect(await inside()).toHaveLength(2);
      isDeaf = true;
      expect(await caught(inside())).toMatchObject({ kind: 'unavailable' });
      isDeaf = false;
      expect(await inside()).toHaveLength(2);
    } finally {
      await heard.close();
      gate.close();
    }
  });
});

describe('a transaction that stands still', () => {
  it('is ended by the database, and its locks with it, while its process still stands', async () => {
    const stopped = await Database.connect({ appUrl: own.appUrl, applicationName: 'trivet:stopped', idleMs: 500 });
    try {
      let goOn = (): void => {};
      const standing = new Promise<void>(resolve => {
        goOn = resolve;
      });
      let isLocked = false;
      const work = caught(
        stopped.withTenant(TENANT, async tx => {
          await tx.query(TOUCH, [FIRST]);
          isLocked = true;
          await standing;
          await tx.query(TOUCH, [FIRST]);
        }),
      );
      await until('it has the lock', () => isLocked);
      const before = await versionOf(FIRST);
      await database.withTenant(TENANT, tx => tx.query(TOUCH, [FIRST]));
      expect(await versionOf(FIRST)).toBe(before + 1);
      goOn();
      expect(await work).toMatchObject({ kind: 'unavailable' });
      expect(await stopped.withTenant(TENANT, tx => tx.query(BACKENDS))).toHaveLength(2);
    } finally {
      await stopped.close();
    }
  });
});

describe('a listener whose connection ends in the middle of LISTEN', () => {
  it('comes back once', async () => {
    let cuts = 3;
    const { gate, url } = await gateBefore(own.appUrl, (chunk, near) => {
      if (cuts === 0 || !chunk.includes('LISTEN')) return true;
      cuts--;
      near.destroy();
      return false;
    });
    const applicationName = 'trivet:cut';
    const cut = await Database.connect({ appUrl: url, applicationName, poolSize: 1 });
    const heard: string[] = [];
    let connects = 0;
    const listener = cut.listen(
      ['test_cut'],
      (_, payload) => heard.push(payload),
      () => connects++,
    );
    try {
      await until('it listens', () => connects > 0);
      await until('nobody else is on the way', async () => {
        const connections = () =>
          new Promise<number>((resolve, reject) =>
            gate.getConnections((error, n) => (error ? reject(error) : resolve(n))),
          );
        const listening = await own.query("SELECT FROM pg_stat_activity WHERE query = 'LISTEN test_cut'");
        // The pool's, and one for each that listens.
        return (await connections()) === 1 + listening.length && cuts === 0;
      });
      await database.call(sql('test_notify_cut', "SELECT pg_notify('test_cut', 'once')"), []);
      await until('it hears', () => heard.length > 0);
      expect(await own.query("SELECT FROM pg_stat_activity WHERE query = 'LISTEN test_cut'")).toHaveLength(1);
      expect(connects).toBe(1);
    } finally {
      await listener.stop();
      await cut.close();
      gate.close();
    }
  });
});

describe("the database's own errors", () => {
  const raised = (code: string) =>
    caught(database.call(sql(`test_raise_${code}`, `DO $$ BEGIN RAISE SQLSTATE '${code}'; END $$`), []));

  it.each([
    ['40001', 'aborted'], // could not be serialised, five times
    ['40P01', 'aborted'], // a deadlock, five times
    ['23505', 'aborted'],
    ['25006', 'unavailable'], // a standby after a failover
    ['25P03', 'unavailable'], // this process was stopped inside of a transaction
    ['57014', 'unavailable'],
    ['42P01', 'internal'],
  ])('%s is %s: what a repeat mends is not a defect', async (code, kind) => {
    expect(await raised(code)).toMatchObject({ kind });
  });
});
