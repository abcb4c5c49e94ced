import { randomUUID } from 'node:crypto';
import type { ScsiDisk } from '#backends/tgt/scsi-disk';
import { attach } from '../../apps/cli/src/csp/attach.js';
import { ReaderApi } from '../../apps/cli/src/csp/reader-api.js';

const MIB = 1024 ** 2;
const NAME = 'kept';
const STORED = Buffer.alloc(MIB / 4, 'what was stored');
const PLACES = [0, 8 * MIB];

/** A volume with data, which a host of its own writes and reads over iSCSI. */
export class KeptVolume {
  private readonly api: ReaderApi;

  /** @param url of the gateway's HTTP */
  constructor(url: string, password: string) {
    this.api = new ReaderApi({ url, username: 'csp', password });
  }

  async leave(): Promise<void> {
    await this.api.login();
    await this.api.csp('POST', 'volumes', { name: NAME, size: 64 * MIB, config: {} });
    await this.attached(async disk => {
      for (const at of PLACES) await disk.write(at, STORED);
      await disk.flush();
    });
  }

  async find(): Promise<void> {
    await this.api.login();
    await this.attached(async disk => {
      for (const at of PLACES)
        if (!STORED.equals(await disk.read(at, STORED.length))) throw new Error(`the volume differs at ${at}`);
    });
  }

  private async attached(work: (disk: ScsiDisk) => Promise<void>): Promise<void> {
    const [volume] = await this.api.csp<{ id: string }[]>('GET', `volumes?name=${NAME}`);
    const hostUuid = randomUUID();
    const disk = await attach(this.api, volume!.id, { hostName: `host-${hostUuid.slice(0, 8)}`, hostUuid });
    await work(disk);
    await this.api.csp('PUT', `volumes/${volume!.id}/actions/unpublish`, { host_uuid: hostUuid });
    await disk.closed;
    await this.api.csp('DELETE', `hosts/${hostUuid}`);
  }
}
