import { existsSync } from 'node:fs';
import { type Home, writeWhole } from '../home.js';
import { azuriteOf } from '../parts/azurite.js';
import { btrfsPart } from '../parts/btrfs.js';
import { chromiumPath } from '../parts/chromium.js';
import { findProgram } from '../parts/command.js';
import { debianPart, ubuntuPart } from '../parts/debian.js';
import { dockerFolder, dockerPart } from '../parts/docker.js';
import { guestImage, guestPart } from '../parts/guest.js';
import { helmProgram } from '../parts/helm.js';
import { libiscsiPart } from '../parts/libiscsi.js';
import { motoOf } from '../parts/moto.js';
import { superuserUrl } from '../parts/postgres.js';
import { tgtPart } from '../parts/tgt.js';
import { isMounted } from '../processes/mounts.js';

/** What test files find by TRIVET_TEST_PARTS: the parts of this run, and who may do what there. */
export interface TestParts {
  postgres: {
    /** May create databases, of which each test file has its own. */
    superuserUrl: string;
    host: string;
    port: number;
    ownerUrl: string;
    appUrl: string;
    engineUrl: string;
  } | null;
  redis: { url: string } | null;
  rgw: { endpoint: string; region: string; accessKeyFile: string; secretKeyFile: string } | null;
  /** Azurite, where it is installed: Microsoft's emulator of the Blob service. */
  azurite: { endpoint: string; account: string; accountKey: string } | null;
  /** moto's server, where it is installed: S3 and IAM of AWS. */
  moto: { endpoint: string; accessKeyId: string; secretAccessKey: string } | null;
  /** The Ceph of this run, where librbd is installed: its configuration, with the administrator's key. */
  rbd: { configuration: string } | null;
  /** An XFS with reflink; each test file takes folders of its own below it as pools. */
  xfs: { path: string } | null;
  /** A btrfs can be made and mounted; a test makes its own. */
  btrfs: object | null;
  /** tgtd is installed; a test starts its own. */
  tgt: object | null;
  /** Stock initiators are installed. */
  libiscsi: object | null;
  /** A browser is installed. */
  chromium: { path: string } | null;
  /** A bare Debian can be made. */
  debian: object | null;
  ubuntu: object | null;
  /** QEMU, and the folder with kernel and disk of a Linux host. */
  guest: { folder: string } | null;
  /** The helm that deploy/kubernetes is rendered by. */
  helm: { path: string } | null;
  /** Images and Compose for a Docker engine, which tests start. */
  docker: { folder: string } | null;
  kekFile: string;
  home: string;
}

export async function testParts(home: Home, env: Readonly<Record<string, string | undefined>>): Promise<TestParts> {
  const {
    TRIVET_DATABASE_URL: appUrl,
    TRIVET_DATABASE_ENGINE_URL: engineUrl,
    TRIVET_DATABASE_OWNER_URL: ownerUrl,
  } = env;
  const redis = env.TRIVET_REDIS_URL;
  const endpoint = env.TRIVET_RGW_ENDPOINT;
  const port = appUrl === undefined ? 0 : Number(new URL(appUrl).port);
  const chromium = chromiumPath();
  const guest = guestImage();
  const azurite = azuriteOf(home);
  const moto = motoOf(home);
  const helm = helmProgram();
  const docker = dockerFolder();
  const configuration = home.file('ceph', 'ceph.conf');
  const mounts = isMounted(home.file('pool'));
  return {
    postgres:
      appUrl && engineUrl && ownerUrl
        ? { superuserUrl: superuserUrl(home, port), host: '127.0.0.1', port, ownerUrl, appUrl, engineUrl }
        : null,
    redis: redis && redis !== 'none' ? { url: redis } : null,
    rgw: endpoint
      ? {
          endpoint,
          region: env.TRIVET_RGW_REGION ?? 'default',
          accessKeyFile: env.TRIVET_RGW_ACCESS_KEY_FILE ?? '',
          secretKeyFile: env.TRIVET_RGW_SECRET_KEY_FILE ?? '',
        }
      : null,
    azurite: azurite === undefined ? null : (JSON.parse(azurite) as TestParts['azurite']),
    moto: moto === undefined ? null : (JSON.parse(moto) as TestParts['moto']),
    rbd: endpoint && findProgram('rbd') !== undefined && existsSync(configuration) ? { configuration } : null,
    xfs: mounts ? { path: home.file('pool') } : null,
    // Where the pool could be mounted, so can an image of a test's own.
    btrfs: mounts && (await btrfsPart.check()) === undefined ? {} : null,
    tgt: (await tgtPart.check()) === undefined ? {} : null,
    libiscsi: (await libiscsiPart.check()) === undefined ? {} : null,
    chromium: chromium === undefined ? null : { path: chromium },
    debian: (await debianPart.check()) === undefined ? {} : null,
    ubuntu: (await ubuntuPart.check()) === undefined ? {} : null,
    guest: (await guestPart.check()) === undefined && guest !== undefined ? { folder: guest } : null,
    helm: helm === undefined ? null : { path: helm },
    docker: (await dockerPart.check()) === undefined && docker !== undefined ? { folder: docker } : null,
    kekFile: home.kekFile,
    home: home.path,
  };
}

export function writeTestParts(home: Home, parts: TestParts): string {
  const path = home.file('test-parts.json');
  writeWhole(path, `${JSON.stringify(parts, null, 2)}\n`);
  return path;
}
