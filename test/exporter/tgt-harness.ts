/** tgt with images in a folder and hosts of our own, for the conformance suite and the other tests of the exporter. */
import { randomUUID } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, readSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ImageRef } from '#backends/block-backend';
import type { ExporterHarness, ExporterSession } from '#backends/conformance/exporter-world';
import type { DaemonRef, Initiator as Host, TargetSpec } from '#backends/exporter';
import { HostFences } from '#backends/host-fence';
import { identityOf } from '#backends/linux/process-state';
import { TgtExporter, type TgtOptions } from '#backends/tgt/tgt-exporter';
import { serialNumberIn } from '#backends/tgt/unit-identity';
import type { UnitStore } from '#backends/tgt/unit-store';
import { unleased } from '#platform/lease-signal';
import { Initiator, type InitiatorSession } from '#test/support/initiator';
import { parts, until } from '#test/support/parts';

/** False when the test run could not install tgt; TRIVET_REQUIRE decides whether that may be. */
export const hasTgt = (): boolean => Boolean(parts().tgt);
/** The stock clients, iscsi-inq and qemu-io. */
export const hasLibiscsi = (): boolean => Boolean(parts().libiscsi);

export interface TgtHarness extends ExporterHarness {
  exporter: TgtExporter;
  /** Of the daemons' folders. */
  folder: string;
  pathOf(image: ImageRef): string;
  /** Another exporter on other folders of daemons or images. */
  open(options?: { folder?: string }): TgtExporter;
  login(spec: TargetSpec, initiator: Host): Promise<TgtSession>;
  pidOf(daemon: DaemonRef): Promise<number>;
}

export type TgtSession = ExporterSession & InitiatorSession;

/** Images that a test makes, by other means than the product's. */
export interface TestImages {
  volumes: TgtOptions['volumes'];
  store?: UnitStore;
  make(image: ImageRef, sizeBytes: number): Promise<void>;
  grow(image: ImageRef, sizeBytes: number): Promise<void>;
  remove(image: ImageRef): Promise<void>;
  read(image: ImageRef, offset: number, length: number): Promise<Buffer>;
  close(): Promise<void>;
}

export async function openTgtHarness(
  openImages: (root: string) => Promise<TestImages> = async root => fileImages(root),
): Promise<TgtHarness> {
  const root = mkdtempSync(join(tmpdir(), 'trivet-tgt-'));
  const folder = join(root, 'tgt');
  const daemons: DaemonRef[] = [];
  const images = await openImages(root);
  const { volumes, store } = images;
  const open = (options: { folder?: string } = {}): TgtExporter =>
    new TgtExporter({
      folder: options.folder ?? folder,
      fences: new HostFences(join(root, 'fences')),
      volumes,
      ...(store ? { store } : {}),
    });
  const exporter = open();
  const soon = () => unleased(AbortSignal.timeout(30_000));
  const pidOf = async (daemon: DaemonRef): Promise<number> => {
    const [pid] = await exporter.writers(daemon, soon());
    if (pid === undefined) throw new Error('it does not run');
    return pid;
  };
  return {
    exporter,
    another: open(),
    folder,
    pathOf: volumes.pathOf,
    open,
    pidOf,
    async newDaemon() {
      const portals = [`127.0.0.1:${await freePort()}`];
      const daemon = { tenantId: randomUUID(), pool: 'pool', portals };
      daemons.push(daemon);
      return daemon;
    },
    async makeImage(sizeBytes) {
      const image: ImageRef = { pool: 'pool', kind: 'volume', id: randomUUID(), folder: '' };
      await images.make(image, sizeBytes);
      return image;
    },
    growImage: images.grow,
    removeImage: images.remove,
    readImage: images.read,
    async login(spec, { iqn, chap }) {
      const session = await new Initiator(iqn).login(spec.daemon.portals[0] as string, spec.iqn, spec.lun, chap);
      return Object.assign(session, {
        serialNumber: async () => serialNumberIn(await session.inquiryPage(0x83)) ?? '',
      }) as TgtSession;
    },
    async killDaemon(daemon) {
      const pid = await pidOf(daemon);
      process.kill(pid, 'SIGKILL');
      // The signal is sent, not yet heard.
      await until('tgtd is dead', () => identityOf(pid) === undefined);
    },
    async stallDaemon(daemon) {
      process.kill(await pidOf(daemon), 'SIGSTOP');
    },
    async close() {
      for (const daemon of daemons) await exporter.stopDaemon(daemon, soon());
      await images.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function fileImages(root: string): TestImages {
  const pathOf = (image: ImageRef): string => join(root, image.id);
  return {
    volumes: {
      pathOf,
      async inspectImage(image) {
        const found = statSync(pathOf(image), { bigint: true, throwIfNoEntry: false });
        if (!found) return { state: 'absent' };
        return { state: 'present', sizeBytes: found.size, allocatedBytes: found.blocks * 512n, readOnly: false };
      },
    },
    async make(image, sizeBytes) {
      writeFileSync(pathOf(image), '');
      truncateSync(pathOf(image), sizeBytes);
    },
    async grow(image, sizeBytes) {
      truncateSync(pathOf(image), sizeBytes);
    },
    async remove(image) {
      rmSync(pathOf(image));
    },
    async read(image, offset, length) {
      const file = openSync(pathOf(image), 'r');
      try {
        const data = Buffer.alloc(length);
        readSync(file, data, 0, length, offset);
        return data;
      } finally {
        closeSync(file);
      }
    },
    close: async () => {},
  };
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
