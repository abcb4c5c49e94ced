import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Passwords } from '#tenancy/credentials/passwords';
import type { AdminHouse } from '#test/admin/admin-house';
import { type BenchOptions, type Figure, median, perSecond, rate } from '#test/bench/measure';

const CALLERS = 16;
const PASSWORD = 'a password of the bench';

/** What a login costs (argon2id as it is in production), and what it costs those who work with files meanwhile. */
export async function loginFigures(house: AdminHouse, { quick }: BenchOptions): Promise<Figure[]> {
  const { root } = house;
  const made = await house.call(root.admin, 'POST', '/tenants/appliance/users', {
    body: { name: 'bench', role: 'viewer', password: PASSWORD },
  });
  if (made.status !== 201) throw new Error(`no user: ${made.status} ${JSON.stringify(made.body)}`);
  const login = async () => {
    const reply = await fetch(`${house.appliance.cspUrl}/api/v1/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username: 'bench@appliance', password: PASSWORD }),
    });
    await reply.arrayBuffer();
    if (reply.status !== 200) throw new Error(`login: ${reply.status}`);
  };
  const alone: number[] = [];
  for (let n = 0; n < (quick ? 3 : 20); n++) alone.push(await timed(login));
  const many = await rate(CALLERS, quick ? 500 : 5_000, login);

  const passwords = new Passwords();
  const hashed = await passwords.hash(PASSWORD);
  const verify = () =>
    passwords.verify(
      PASSWORD,
      async () => hashed,
      async ({ matches }) => matches,
    );
  const file = join(house.appliance.folder, 'bench-file');
  await writeFile(file, Buffer.alloc(64 * 1024));
  const reads = async () => {
    const taken: number[] = [];
    const end = performance.now() + (quick ? 300 : 2_000);
    while (performance.now() < end) taken.push(await timed(() => readFile(file)));
    return median(taken);
  };
  const idle = await reads();
  let going = true;
  const busy = Array.from({ length: CALLERS }, async () => {
    while (going) await verify();
  });
  const beside = await reads();
  going = false;
  await Promise.all(busy);
  return [
    {
      name: 'a login, alone, median',
      value: `${median(alone).toFixed(0)} ms`,
      limit: '',
      baseline: `argon2id ${(await timed(verify)).toFixed(0)} ms`,
    },
    { name: `logins, ${CALLERS} callers`, value: perSecond(many), limit: '', baseline: '' },
    {
      name: `reading a file of 64 KiB beside ${CALLERS} logins at a time, median`,
      value: `${beside.toFixed(2)} ms`,
      limit: '< 10 ms: logins leave threads to files',
      baseline: `${idle.toFixed(2)} ms without logins`,
      ok: beside < 10,
    },
  ];
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}
