/**
 * A client on the host of docker-compose.yml, as a program: `leave` makes a bucket with an object and a volume with data, `find` looks at
 * them, `change` writes something else to the volume. Standard input has what it logs in with, as JSON.
 */
import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { CreateBucketCommand, GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { ScsiDisk } from '#backends/tgt/scsi-disk';
import { attach } from '../../apps/cli/src/csp/attach.js';
import { ReaderApi } from '../../apps/cli/src/csp/reader-api.js';

/** Of the administrator of the object store, and of the CSP user `csp`. */
export interface Logins {
  accessKeyId: string;
  secretAccessKey: string;
  password: string;
}

const MIB = 1024 ** 2;
const STORED = Buffer.alloc(MIB, 'what was stored');
const CHANGED = Buffer.alloc(MIB, 'something else');
const OBJECT = { Bucket: 'kept', Key: 'object' };
const VOLUME = 'kept';

const { password, ...credentials } = JSON.parse(await text(process.stdin)) as Logins;
const s3 = new S3Client({ endpoint: 'http://127.0.0.1:7480', region: 'default', forcePathStyle: true, credentials });
const csp = new ReaderApi({ url: 'http://127.0.0.1:8740', username: 'csp', password });

/** Published to a host of its own, with CHAP, for that long. */
async function withVolume(work: (disk: ScsiDisk) => Promise<void>): Promise<void> {
  const [volume] = await csp.csp<{ id: string }[]>('GET', `volumes?name=${VOLUME}`);
  const hostUuid = randomUUID();
  const disk = await attach(csp, volume!.id, { hostName: `host-${hostUuid.slice(0, 8)}`, hostUuid });
  await work(disk);
  await csp.csp('PUT', `volumes/${volume!.id}/actions/unpublish`, { host_uuid: hostUuid });
  await disk.closed;
  await csp.csp('DELETE', `hosts/${hostUuid}`);
}

const jobs: Record<string, () => Promise<void>> = {
  async leave() {
    await s3.send(new CreateBucketCommand({ Bucket: OBJECT.Bucket }));
    await s3.send(new PutObjectCommand({ ...OBJECT, Body: STORED }));
    await csp.csp('POST', 'volumes', { name: VOLUME, size: 64 * MIB, config: {} });
    await withVolume(async disk => {
      for (const at of [0, 8 * MIB]) await write(disk, at, STORED);
    });
  },
  async change() {
    await withVolume(disk => write(disk, 16 * MIB, CHANGED));
  },
  async find() {
    const { Body } = await s3.send(new GetObjectCommand(OBJECT));
    if (!STORED.equals(await Body!.transformToByteArray())) throw new Error('the object differs');
    await withVolume(async disk => {
      for (const at of [0, 8 * MIB])
        if (!STORED.equals(await disk.read(at, MIB))) throw new Error(`the volume differs at ${at}`);
    });
  },
};

async function write(disk: ScsiDisk, at: number, data: Buffer): Promise<void> {
  const part = 256 * 1024;
  for (let offset = 0; offset < data.length; offset += part)
    await disk.write(at + offset, data.subarray(offset, offset + part));
  await disk.flush();
}

await csp.login();
await jobs[process.argv[2]!]!();
await csp.logout();
