import { readFileSync } from 'node:fs';

/** The parts that `./trivet test` started; the launcher writes the file (apps/cli/src/testing/parts-file.ts). */
export interface Parts {
  postgres: { superuserUrl: string; ownerUrl: string; appUrl: string; engineUrl: string };
  redis: { url: string } | null;
  rgw: { endpoint: string; region: string; accessKeyFile: string; secretKeyFile: string } | null;
  /** Azurite, where it is installed: Microsoft's emulator of the Blob service. */
  azurite: { endpoint: string; account: string; accountKey: string } | null;
  /** moto's server, where it is installed: S3 and IAM of AWS. */
  moto: { endpoint: string; accessKeyId: string; secretAccessKey: string } | null;
  /** The same Ceph, for images: its configuration, with the administrator's key. */
  rbd: { configuration: string } | null;
  /** Where an XFS with reflink is mounted; each test file takes folders of its own below it as pools. */
  xfs: { path: string } | null;
  /** A btrfs can be made and mounted; a test makes its own. */
  btrfs: object | null;
  /** tgtd is installed; a test starts its own. */
  tgt: object | null;
  /** iscsi-inq, iscsi-ls and qemu-io with its iSCSI driver are installed. */
  libiscsi: object | null;
  /** A browser, for the dashboard. */
  chromium: { path: string } | null;
  /** debootstrap is installed, and may make what tests enter by chroot. */
  debian: object | null;
  ubuntu: object | null;
  /** QEMU, and the folder with kernel and disk of a Linux host. */
  guest: { folder: string } | null;
  /** The helm that deploy/kubernetes is rendered by. */
  helm: { path: string } | null;
  /** Images and Compose for a Docker engine, which tests start. */
  docker: { folder: string } | null;
}

export function parts(): Parts {
  const file = process.env.TRIVET_TEST_PARTS;
  if (!file) throw new Error('TRIVET_TEST_PARTS is not set: run these tests by `./trivet test`');
  return JSON.parse(readFileSync(file, 'utf8'));
}

/** Polls until `check` gives something; the only way in which tests let time pass. */
export async function until<T>(what: string, check: () => T | Promise<T>, timeoutMs = 30_000): Promise<NonNullable<T>> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const value = await check();
    if (value) return value as NonNullable<T>;
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await new Promise(resolve => setTimeout(resolve, 25));
  }
}
