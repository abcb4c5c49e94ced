import { existsSync } from 'node:fs';
import { type Home, writeWhole } from '../home.js';
import { CEPH_PROGRAMS, CephCluster } from './ceph-cluster.js';
import { warmUp } from './ceph-warm-up.js';
import { CommandError } from './command.js';
import { type Lack, lacking, type Part, type PartContext } from './part.js';

const ADMIN_USER = 'trivet-admin';
const ADMIN_CAPS = 'users=*;buckets=*;metadata=*;usage=*';
const RGW_REGION = 'default';

/** A single-node Ceph with radosgw, from Debian's packages. */
export const cephRgwPart: Part = {
  name: 'rgw',
  addressVariable: 'TRIVET_RGW_ENDPOINT',
  absent: {},

  async check(): Promise<Lack | undefined> {
    const packages = ['ceph-mon', 'ceph-osd', 'radosgw', 'ceph-common'];
    return lacking(CEPH_PROGRAMS, packages, 'no object store of Ceph', 'set TRIVET_RGW_ENDPOINT');
  },

  async start(context: PartContext): Promise<Record<string, string>> {
    const cluster = await CephCluster.open(context);
    await cluster.startMon();
    if (cluster.isNew) {
      // The pools are made while the osd is formatted; they wait for it.
      await Promise.all([cluster.makeOsd().then(() => cluster.startOsd()), cluster.makeGateway()]);
    } else {
      await cluster.startOsd();
    }
    await cluster.startGateway();
    const keys = keyFiles(context.home);
    if (cluster.isNew || !existsSync(keys.secret)) await makeAdmin(cluster, context.home);
    const endpoint = `http://127.0.0.1:${cluster.place.rgwPort}`;
    await warmUp(endpoint, RGW_REGION, keys, context.signal);
    if (cluster.isNew) cluster.markMade();
    return {
      TRIVET_RGW_ENDPOINT: endpoint,
      TRIVET_RGW_PUBLIC_ENDPOINT: endpoint,
      TRIVET_RGW_REGION: RGW_REGION,
      TRIVET_RGW_ACCESS_KEY_FILE: keys.access,
      TRIVET_RGW_SECRET_KEY_FILE: keys.secret,
    };
  },
};

const keyFiles = (home: Home): { access: string; secret: string } => ({
  access: home.file('secrets', 'rgw-access-key'),
  secret: home.file('secrets', 'rgw-secret-key'),
});

interface RgwUser {
  keys: { access_key: string; secret_key: string }[];
}

/** RGW chooses the keys and prints them: no secret is in anybody's arguments. */
async function makeAdmin(cluster: CephCluster, home: Home): Promise<void> {
  const create = ['user', 'create', `--uid=${ADMIN_USER}`, '--display-name=Trivet', `--caps=${ADMIN_CAPS}`];
  const printed = await cluster.radosgwAdmin(create).catch((error: unknown) => {
    if (error instanceof CommandError && /exists/.test(error.stderr)) {
      return cluster.radosgwAdmin(['user', 'info', `--uid=${ADMIN_USER}`]);
    }
    throw error;
  });
  const [key] = (JSON.parse(printed) as RgwUser).keys;
  if (key === undefined) throw new Error(`the RGW user ${ADMIN_USER} has no key`);
  const files = keyFiles(home);
  writeWhole(files.access, `${key.access_key}\n`);
  writeWhole(files.secret, `${key.secret_key}\n`);
}
