import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, get, request } from 'node:http';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';
import { cutFigures } from '#test/bench/cuts';
import { alternate, type BenchOptions, type Figure, median, perSecond, rate, spread } from '#test/bench/measure';
import { residentMiB } from '#test/bench/resident';
import type { RealDriver } from '#test/csp/driver-client';
import { TestAppliance } from '#test/support/appliance';
import { CSP_PASSWORD } from '#test/support/block-folders';
import { parts, until } from '#test/support/parts';

const CALLERS = 32;
const POOL = 10;
const MIB = 1024 ** 2;

/** The block side: its reads, its publications, its lists, and what a snapshot costs whom. */
export async function benchCsp(options: BenchOptions): Promise<Figure[]> {
  const appliance = await TestAppliance.start({
    backend: 'fake',
    block: parts().xfs ? 'xfs' : 'fake',
    env: {
      TRIVET_DATABASE_POOL: String(POOL),
      TRIVET_LEASE_MS: '15000',
      TRIVET_RECONCILE_MS: '2000',
      TRIVET_LOG_LEVEL: 'warn',
    },
  });
  try {
    await until('the pool was looked at', async () => {
      return (await appliance.database.query('SELECT FROM trivet.pool')).length === 1;
    });
    await appliance.database.query('UPDATE trivet.pool SET thin_ratio = 1000');
    const driver = appliance.driver();
    await driver.login();
    return [
      ...(await reads(appliance, driver, options)),
      ...(await publications(appliance, driver, options)),
      ...(await lists(appliance, options)),
      ...(await cutFigures(appliance, driver, options)),
    ];
  } finally {
    await appliance.close();
  }
}

async function reads(appliance: TestAppliance, driver: RealDriver, { quick }: BenchOptions): Promise<Figure[]> {
  const headers = { 'x-auth-token': await tokenOf(appliance) };
  await appliance.database.query('CREATE TABLE public.bench_volume (id text PRIMARY KEY, volume jsonb)');
  // Of several, because reads of one volume at the same moment are one read.
  const ids: string[] = [];
  for (let n = 0; n < (quick ? 4 : 4 * CALLERS); n++) {
    const { id } = await driver.createVolume(n === 0 ? 'bench-read' : `bench-read-${n}`, 64 * MIB, {
      'csi.storage.k8s.io/pvc/name': 'claim',
    });
    const volume = await fetch(`${appliance.cspUrl}/containers/v1/volumes/${id}`, { headers });
    await appliance.database.query('INSERT INTO public.bench_volume VALUES ($1, $2)', [id, await volume.text()]);
    ids.push(id);
  }
  let turn = 0;
  const bare = await startBare(appliance);
  try {
    const figures: Figure[] = [];
    for (const keepAlive of [true, false]) {
      const agent = new Agent({ keepAlive, maxSockets: CALLERS });
      const of = (base: string) => () =>
        fetchOne(`${base}/containers/v1/volumes/${ids[turn++ % ids.length]}`, headers, agent);
      const ms = quick ? 300 : 3_000;
      const [ours, theirs] = await alternate(
        quick ? 1 : 5,
        () => rate(CALLERS, ms, of(appliance.cspUrl)),
        () => rate(CALLERS, ms, of(bare.url)),
      );
      agent.destroy();
      const ratio = median(ours) / median(theirs);
      figures.push({
        name: `GET volume, ${keepAlive ? 'keep-alive' : 'Connection: close'}, ${CALLERS} callers`,
        value: `${perSecond(median(ours))} (${ratio.toFixed(2)} of bare)`,
        limit: '>= 0.67 of bare Fastify with one SELECT',
        baseline: perSecond(median(theirs)),
        ok: ratio >= 2 / 3,
        spread: Math.max(spread(ours), spread(theirs)),
      });
    }
    return figures;
  } finally {
    await bare.stop();
  }
}

const NODE = {
  name: 'bench-node',
  uuid: '41302701-0196-420f-b319-834a79891db0',
  iqns: ['iqn.1994-05.com.redhat:bench'],
  networks: ['192.0.2.2/24'],
};

/** The same: within a quarter. */
const FLAT = 1.25;

async function publications(appliance: TestAppliance, driver: RealDriver, { quick }: BenchOptions): Promise<Figure[]> {
  const [few, many, samples] = quick ? [2, 20, 5] : [10, 1_000, 30];
  const volume = await driver.createVolume('bench-published', 64 * MIB);
  const token = await tokenOf(appliance);
  const latency = async () => {
    const taken: number[] = [];
    for (let n = 0; n < samples; n++) {
      const begin = performance.now();
      await put(appliance, token, `volumes/${volume.id}/actions/publish`, publishBody);
      taken.push(performance.now() - begin);
      await put(appliance, token, `volumes/${volume.id}/actions/unpublish`, { host_uuid: NODE.uuid });
    }
    return median(taken);
  };
  let made = 0;
  const upTo = async (count: number) => {
    const publishOne = async () => {
      while (made < count) {
        const { id } = await driver.createVolume(`bench-many-${made++}`, 64 * MIB);
        await put(appliance, token, `volumes/${id}/actions/publish`, publishBody);
      }
    };
    await Promise.all(Array.from({ length: 8 }, publishOne));
  };
  await driver.publish(volume.id, NODE);
  await driver.unpublish(volume.id, NODE);
  await upTo(few);
  const before = await latency();
  await upTo(many);
  const after = await latency();
  return [
    {
      name: `publish beside ${many} published volumes, median`,
      value: `${after.toFixed(1)} ms (${(after / before).toFixed(2)} of that beside ${few})`,
      limit: `<= ${FLAT} of the latency beside ${few}`,
      baseline: `${before.toFixed(1)} ms`,
      ok: after / before <= FLAT,
    },
  ];
}

const publishBody = { host_uuid: NODE.uuid, access_protocol: 'iscsi' };

async function lists(appliance: TestAppliance, { quick }: BenchOptions): Promise<Figure[]> {
  const count = quick ? 500 : 10_000;
  await appliance.database.query(
    `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
                                destroy_on_delete, description, config)
     SELECT v.tenant_id, gen_random_uuid(), v.backend_id, 'list-' || n, 'ready', v.desired, v.fingerprint, v.pool, '', 67108864,
            false, true, '', v.config
       FROM generate_series(1, $1) AS n, (SELECT * FROM trivet.volume WHERE name = 'bench-read') AS v`,
    [count],
  );
  const headers = { 'x-auth-token': await tokenOf(appliance) };
  const { pid } = appliance.process('gateway');
  const list = () => fetch(`${appliance.cspUrl}/containers/v1/volumes`, { headers });
  const before = residentMiB(pid);
  // 5 resets the high-water mark.
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
  const begin = performance.now();
  const listed = (await (await list()).json()) as unknown[];
  const took = performance.now() - begin;
  for (let n = 0; n < 3; n++) await (await list()).arrayBuffer();
  const growth = residentMiB(pid, 'VmHWM') - before;
  await appliance.database.query("DELETE FROM trivet.volume WHERE name LIKE 'list-%'");
  return [
    {
      name: `a list of ${listed.length} volumes: growth of the gateway`,
      value: `${growth.toFixed(0)} MiB, first one in ${took.toFixed(0)} ms`,
      limit: '< 64 MiB',
      baseline: `${before.toFixed(0)} MiB before`,
      ok: growth < 64,
    },
  ];
}

async function tokenOf(appliance: TestAppliance): Promise<string> {
  const reply = await fetch(`${appliance.cspUrl}/containers/v1/tokens`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'csp', password: CSP_PASSWORD, array_ip: '' }),
  });
  return ((await reply.json()) as { session_token: string }).session_token;
}

function fetchOne(url: string, headers: Record<string, string>, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, { headers, agent }, reply => {
      if (reply.statusCode !== 200) reject(new Error(`${url}: ${reply.statusCode}`));
      reply.resume();
      reply.once('end', resolve);
    }).once('error', reject);
  });
}

function put(appliance: TestAppliance, token: string, path: string, body: object): Promise<void> {
  return new Promise((resolve, reject) => {
    const payload = JSON.stringify(body);
    const call = request(`${appliance.cspUrl}/containers/v1/${path}`, {
      method: 'PUT',
      headers: { 'x-auth-token': token, 'content-type': 'application/json', 'content-length': payload.length },
    });
    call.once('error', reject);
    call.once('response', reply => {
      const chunks: Buffer[] = [];
      reply.on('data', (chunk: Buffer) => chunks.push(chunk));
      reply.once('end', () => {
        if ([200, 204].includes(reply.statusCode!)) resolve();
        else reject(new Error(`${path}: ${reply.statusCode} ${Buffer.concat(chunks)}`));
      });
    });
    call.end(payload);
  });
}

async function startBare(appliance: TestAppliance): Promise<{ url: string; stop(): Promise<void> }> {
  const script = join(PACKAGE_ROOT, 'dist', 'test', 'bench', 'bare-csp.js');
  const child = spawn(process.execPath, [script, appliance.database.superuserUrl, String(POOL)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [port] = await once(child.stdout!, 'data');
  return {
    url: `http://127.0.0.1:${String(port).trim()}`,
    stop: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
