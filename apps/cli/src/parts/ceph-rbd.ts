import { existsSync, readFileSync } from 'node:fs';
import { type Home, writeWhole } from '../home.js';
import { findProgram, runCommand } from './command.js';
import { forTests, type Lack, type Part, type PartContext } from './part.js';

const USER = 'trivet';
const POOL = 'trivet-volumes';
const PLUGIN = '/usr/lib/tgt/backing-store/bs_rbd.so';
const COMMAND_MS = 60_000;

/** A pool for images in the Ceph of this home, and a user of it: the backend `ceph` beside `local`. Only where it is asked for. */
export const cephRbdPart: Part = {
  name: 'rbd',
  after: 'rgw',
  addressVariable: 'TRIVET_RBD_MONITORS',
  absent: {},

  check: async () => lackOfImages(),

  async start(context: PartContext): Promise<Record<string, string>> {
    const { home, ports } = context;
    const port = await ports.take('iscsi-ceph');
    await ceph(context, ['osd', 'pool', 'create', POOL, '8', '8', 'replicated']);
    await ceph(context, ['osd', 'pool', 'application', 'enable', POOL, 'rbd']);
    const caps = ['mon', 'profile rbd, allow command "osd blocklist"', 'osd', `profile rbd pool=${POOL}`];
    const keyring = await ceph(context, ['auth', 'get-or-create', `client.${USER}`, ...caps]);
    const [, key] = /key = (\S+)/.exec(keyring) ?? [];
    if (key === undefined) throw new Error(`client.${USER} has no key`);
    const keyFile = home.file('secrets', 'rbd-key');
    writeWhole(keyFile, `${key}\n`);
    return {
      TRIVET_RBD_MONITORS: monitorsOf(home),
      TRIVET_RBD_USER: USER,
      TRIVET_RBD_KEY_FILE: keyFile,
      TRIVET_RBD_POOL: POOL,
      // This Ceph has no manager, who would tell.
      TRIVET_RBD_CAPACITY_BYTES: `${diskBytesOf(home)}`,
      TRIVET_RBD_PORTALS: `127.0.0.1:${port}`,
    };
  },
};

function lackOfImages(): Lack | undefined {
  if (findProgram('tgtd') !== undefined && existsSync(PLUGIN)) return undefined;
  const packages = ['tgt', 'tgt-rbd'];
  return { reason: 'tgtd cannot open images of Ceph', packages, remedy: `apt-get install ${packages.join(' ')}` };
}

/** Those with several storage hosts make a network of namespaces. */
function lackOfNetworks(): Lack | undefined {
  if (findProgram('ip') !== undefined) return undefined;
  return { reason: 'no network of hosts can be made', packages: ['iproute2'], remedy: 'apt-get install iproute2' };
}

/** Tests start what they need of it in the Ceph of the run. */
export const rbdTestPart = forTests('rbd', () => lackOfImages() ?? lackOfNetworks());

const configurationOf = (home: Home): string => home.file('ceph', 'ceph.conf');

const ceph = ({ home, mark, signal }: PartContext, args: readonly string[]): Promise<string> =>
  runCommand(findProgram('ceph') ?? 'ceph', ['-c', configurationOf(home), '--connect-timeout', '30', ...args], {
    env: { ...mark },
    signal,
    timeoutMs: COMMAND_MS,
  });

function monitorsOf(home: Home): string {
  const [, monitors] = /^mon host = (.+)$/m.exec(readFileSync(configurationOf(home), 'utf8')) ?? [];
  if (monitors === undefined) throw new Error(`${configurationOf(home)} names no monitor`);
  return monitors;
}

const diskBytesOf = (home: Home): number =>
  (JSON.parse(readFileSync(home.file('ceph', 'cluster.json'), 'utf8')) as { osdBytes: number }).osdBytes;
