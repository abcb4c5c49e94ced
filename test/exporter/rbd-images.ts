/** Images of the test run's Ceph for the exporter, made by librbd as the administrator. */
import { existsSync } from 'node:fs';
import { imageName, pathIn } from '#backends/rbd/rbd-names';
import { rbdUnits } from '#backends/rbd/rbd-units';
import { rbdParts, testCluster } from '#test/block-backend/rbd-harness';
import { hasTgt, openTgtHarness, type TestImages, type TgtHarness } from '#test/exporter/tgt-harness';

/** False without a Ceph or without tgt-rbd; TRIVET_REQUIRE decides whether the former may be. */
export const hasTgtRbd = (): boolean =>
  hasTgt() && rbdParts() !== undefined && existsSync('/usr/lib/tgt/backing-store/bs_rbd.so');

export interface RbdTgtHarness extends TgtHarness {
  cephPool: string;
  key: string;
  /** How many data objects it has. */
  objects(path: string): Promise<number>;
}

const soon = () => AbortSignal.timeout(30_000);

export async function openRbdTgtHarness(maxUnits = 100): Promise<RbdTgtHarness> {
  const cluster = testCluster(rbdParts()!.configuration);
  const { admin, monitors } = cluster;
  const cephPool = await cluster.makePool();
  const { user, key } = await cluster.makeUser([cephPool]);
  const look = (name: string) => admin.call(soon(), 'look', cephPool, { name });
  const images: TestImages = {
    store: rbdUnits({ user, key, monitors }, maxUnits),
    volumes: {
      pathOf: image => pathIn(cephPool, imageName(image), 'volume'),
      async inspectImage(image) {
        const found = await look(imageName(image));
        if (!found) return { state: 'absent' };
        return { state: 'present', sizeBytes: BigInt(found.size), allocatedBytes: 0n, readOnly: false };
      },
    },
    make: (image, sizeBytes) => admin.call(soon(), 'create', cephPool, imageName(image), sizeBytes),
    grow: (image, sizeBytes) => admin.call(soon(), 'grow', cephPool, imageName(image), sizeBytes),
    remove: image => admin.call(soon(), 'trash', cephPool, imageName(image)),
    read: async (image, offset, length) =>
      Buffer.from(await admin.call(soon(), 'read', cephPool, { name: imageName(image) }, offset, length)),
    close: async () => cluster.close(),
  };
  const harness = await openTgtHarness(async () => images);
  const objects = async (path: string): Promise<number> => {
    const found = await look(path.slice(path.indexOf('/') + 1));
    if (!found) throw new Error(`${path} is missing`);
    return admin.call(soon(), 'objects', cephPool, found);
  };
  return Object.assign(harness, { cephPool, key, objects });
}
