import { ADMIN_PASSWORD, type LoadHouse } from '#test/bench/memory-house';
import { CbtClient, rangesOf } from '#test/cbt/client';
import { CSP_PASSWORD } from '#test/support/block-folders';
import { Initiator } from '#test/support/initiator';
import { until } from '#test/support/parts';

const MIB = 1024 ** 2;
const NODES = Array.from({ length: 3 }, (_, n) => ({
  name: `node-${n}`,
  uuid: `41302701-0196-420f-b319-834a79891db${n}`,
  iqns: [`iqn.1994-05.com.redhat:node-${n}`],
  networks: ['192.0.2.2/24'],
}));
/** Apart from each other; half of them again between the snapshots. */
const WRITES = 32;
const SIDECAR = '/snapshotmetadata.SnapshotMetadata';

/** One turn of an interface: what it makes it deletes again, so that what grows is not what was asked for. */
export interface Job {
  name: string;
  everyMs: number;
  turn: (house: LoadHouse, n: number) => Promise<void>;
}

export const JOBS: readonly Job[] = [
  { name: 'COSI', everyMs: 600, turn: cosi },
  { name: 'repeats of COSI', everyMs: 3_000, turn: repeats },
  { name: 'CSP and CBT', everyMs: 3_000, turn: block },
  { name: 'pages of the admin API', everyMs: 1_500, turn: pages },
  { name: 'logins at the page', everyMs: 10_000, turn: logins },
  { name: 'event listeners', everyMs: 5_000, turn: events },
  { name: 'metrics and the page', everyMs: 15_000, turn: metrics },
];

async function cosi({ cosi: client }: LoadHouse, n: number): Promise<void> {
  const name = `soak-${n}`;
  const call = async (method: string, request: object) => {
    const { code, message, reply } = await client.call('r1', method, request);
    if (code !== 'OK') throw new Error(`${method}: ${code} ${message}`);
    return reply;
  };
  const create = { name, protocols: [{ type: 'S3' }], parameters: {} };
  const key = { protocol: { type: 'S3' }, authentication_type: { type: 'KEY' } };
  for (let times = 0; times < 3; times++) await call('DriverCreateBucket', create);
  const buckets = [{ bucket_id: name, access_mode: { mode: 'READ_WRITE' } }];
  const grant = { ...key, account_name: `account-${n}`, buckets };
  const { account_id } = await call('DriverGrantBucketAccess', grant);
  await call('DriverGrantBucketAccess', grant);
  await call('DriverRevokeBucketAccess', { ...key, account_id, buckets: [{ bucket_id: name }] });
  for (let times = 0; times < 2; times++) await call('DriverDeleteBucket', { bucket_id: name });
}

/** As after the restart of a sidecar. */
async function repeats({ cosi: client }: LoadHouse): Promise<void> {
  const request = (n: number) => ({ name: `kept-${n % 8}`, protocols: [{ type: 'S3' }], parameters: {} });
  const all = Array.from({ length: 64 }, (_, n) => client.call('r1', 'DriverCreateBucket', request(n)));
  for (const { code, message } of await Promise.all(all)) if (code !== 'OK') throw new Error(`${code} ${message}`);
}

/** A volume of an application that is written to, backed up by what changed, cloned, grown and deleted. */
async function block(house: LoadHouse, n: number): Promise<void> {
  const driver = house.appliance.driver();
  await driver.login();
  const config = { destroy_on_delete: 'true' };
  const node = NODES[n % NODES.length]!;
  const volume = await driver.createVolume(`soak-${n}`, 64 * MIB, config);
  const { target_names, discovery_ips, lun_id } = await driver.publish(volume.id, node);
  // The fake exports nothing to write to.
  const disk = house.exports
    ? await new Initiator(node.iqns[0]!).login(discovery_ips[0]!, target_names[0]!, lun_id)
    : undefined;
  for (let at = 0; at < WRITES; at++) await disk?.write(at * 2 * MIB, n % 256, 8_192);
  const base = await driver.createSnapshot(volume.id, `base-${n}`);
  for (let at = 0; at < WRITES; at += 2) await disk?.write(at * 2 * MIB, (n + 1) % 256, 4_096);
  const target = await driver.createSnapshot(volume.id, `target-${n}`);
  await changes(house, base.id, target.id);
  const clone = await driver.createVolume(`clone-${n}`, 64 * MIB, config, { snapshotId: target.id });
  await driver.expand(clone.id, 128 * MIB);
  await driver.volumes();
  await disk?.close();
  await driver.unpublish(volume.id, node.uuid);
  await driver.deleteVolume(clone.id);
  for (const { id } of [base, target]) await driver.deleteSnapshot(id);
  await driver.deleteVolume(volume.id);
}

/** By a session over gRPC, and by a login over REST. */
async function changes({ csp, cbt, exports }: LoadHouse, base: string, target: string): Promise<void> {
  const login = await csp('POST', '/containers/v1/tokens', { username: 'csp', password: CSP_PASSWORD, array_ip: '' });
  const token = { 'x-auth-token': login.session_token as string };
  const session = await csp('POST', '/cbt/v1/sessions', { snapshots: [base, target] }, token);
  if (session.sessionState !== 'Ready') throw new Error(session.error ?? session.sessionState);
  const who = { 1: session.sessionToken as string, 2: 'default' };
  // A connection of each session's own, as backup software has it.
  const client = CbtClient.overTls(cbt.port, cbt.ca());
  try {
    for (const [method, of, ranges] of [
      ['GetMetadataAllocated', { 3: target }, WRITES],
      ['GetMetadataDelta', { 3: base, 4: target }, WRITES / 2],
    ] as const) {
      const answer = await client.call(`${SIDECAR}/${method}`, { ...who, ...of });
      const told = rangesOf(answer).length;
      if (answer.code !== 'OK') throw new Error(`${method}: ${answer.code} ${answer.details}`);
      if (told !== (exports ? ranges : 0)) throw new Error(`${method}: ${told} ranges`);
    }
  } finally {
    client.close();
  }
  const lines = await csp('GET', `/cbt/v1/snapshots/${target}/changes?base=${base}`, undefined, token);
  if (!lines.trimEnd().endsWith('{"complete":true}')) throw new Error(`changes: ${lines.slice(-500)}`);
  await csp('DELETE', `/cbt/v1/sessions/${session.id}`, undefined, token);
}

const PAGES = [
  '/overview',
  '/operations?limit=200',
  '/operations?state=failed',
  '/audit?limit=200',
  '/workers',
  '/queues',
  '/tenants',
  ...['volumes', 'snapshots', 'buckets', 'accesses', 'hosts', 'publications', 'snapshot-sessions', 'users'].map(
    list => `/tenants/default/${list}`,
  ),
];

async function pages({ admin }: LoadHouse): Promise<void> {
  for (const page of PAGES) await admin('GET', page);
}

async function logins({ appliance }: LoadHouse): Promise<void> {
  const url = `${appliance.cspUrl}/api/v1/session`;
  const reply = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'admin@appliance', password: ADMIN_PASSWORD }),
  });
  const { csrf } = (await reply.json()) as { csrf: string };
  const cookie = reply.headers.get('set-cookie')!.split(';')[0]!;
  const left = await fetch(url, { method: 'DELETE', headers: { cookie, 'x-csrf-token': csrf } });
  if (left.status !== 204) throw new Error(`logging out: ${left.status}`);
}

/** Besides the ones that stay: they come, hear something, and go. */
async function events(house: LoadHouse): Promise<void> {
  const stop = new AbortController();
  let heard = 0;
  const listeners = Array.from({ length: 3 }, () => house.listen(stop.signal, () => heard++));
  try {
    await until('something was heard', () => heard > 2, 60_000);
  } finally {
    stop.abort();
    await Promise.all(listeners);
  }
}

async function metrics({ appliance }: LoadHouse): Promise<void> {
  await Promise.all(appliance.processes.map(process => process.metrics()));
  const page = await fetch(`${appliance.cspUrl}/`);
  await page.arrayBuffer();
  if (page.status !== 200) throw new Error(`the page: ${page.status}`);
}
