import { z } from 'zod';
import type { BlockBackend, BlockBackendKind, BlockStore, ImageRef, StageRef } from '#backends/block-backend';
import { blockStore } from '#backends/block-store';
import type { DaemonRef, Exporter, TargetRef } from '#backends/exporter';
import { InFlight } from '#backends/in-flight';
import type { ApplianceIdentity } from '#backends/object-backend';
import { reflinkKind } from '#backends/reflink/reflink-kind';
import { poolShare, reflinkRegistration, sharedPools } from '#backends/reflink/reflink-registration';
import { StorageError } from '#platform/errors';
import { daemonKey } from '#test/fakes/block/fake-exporter';
import { FaultyExtents } from '#test/fakes/block/faulty-extents';
import { type FaultyMethod, type FaultyPort, withFaults } from '#test/fakes/block/faulty-port';
import { LateCalls } from '#test/fakes/block/late-calls';
import { type FakeBlockConfig, fakeBlockConfig, openUnfaulted } from '#test/fakes/block/unfaulted-store';
import { FakeState } from '#test/fakes/object/fake-state';

const ofImage = (image: ImageRef) => image.id;
const ofStage = (stage: StageRef) => stage.imageId;
const ofTarget = (target: TargetRef) => target.iqn;
const ofDaemon = (daemon: DaemonRef) => daemonKey(daemon);

type Faulty<Port> = Record<Exclude<keyof Port, 'close' | 'pathOf' | 'listImages'>, FaultyMethod>;

const EXPORTER_METHODS = {
  health: { resource: () => '' },
  ensureDaemon: { resource: ofDaemon },
  daemonInstance: { resource: ofDaemon },
  applyTarget: { resource: ofTarget },
  resizeTarget: { resource: ofTarget },
  removeTarget: { resource: ofTarget },
  listTargets: { resource: ofDaemon },
  ioSince: { resource: ofDaemon },
  writers: { resource: ofDaemon },
  suspectTargets: { resource: ofDaemon },
  stopDaemon: { resource: ofDaemon },
} satisfies Faulty<Exporter>;

function volumeMethods(volumes: BlockBackend): Faulty<BlockBackend> {
  const isThere = async (image: ImageRef): Promise<boolean> =>
    (await volumes.inspectImage(image, AbortSignal.timeout(10_000))).state === 'present';
  /** What became of the image, seen from outside. */
  const change = async (image: ImageRef) => {
    const before = await isThere(image);
    return {
      async after(): Promise<string> {
        const after = await isThere(image);
        if (after && !before) return 'created';
        return before && !after ? 'deleted' : 'unchanged';
      },
    };
  };
  return {
    health: { resource: () => '' },
    inspectPools: { resource: () => '' },
    preparePool: { resource: (pool: string) => pool },
    surveyPool: { resource: (pool: string) => pool },
    inspectImage: { resource: ofImage },
    predictCut: { resource: ofImage },
    stage: { resource: ofStage },
    stageTogether: { resource: (cuts: readonly { stage: StageRef }[]) => cuts.map(cut => cut.stage.imageId).join() },
    commit: {
      resource: ofStage,
      outcome: (_stage: StageRef, image: ImageRef) => change(image),
    },
    discardStages: { resource: ofImage },
    growImage: { resource: ofImage },
    removeImage: { resource: ofImage, outcome: change },
  };
}

/** The adapter `reflink` over the same pools, an exporter that is none, and faults before both. */
export const fakeBlockKind: BlockBackendKind<FakeBlockConfig> = {
  ...reflinkKind,
  mostPublished: () => undefined,
  kind: 'fake-block',
  parseConfig(row: unknown): FakeBlockConfig {
    const parsed = fakeBlockConfig.safeParse(row);
    if (parsed.success) return parsed.data;
    throw new StorageError('internal', `configuration of the fake-block backend: ${z.prettifyError(parsed.error)}`);
  },
  pools: ({ pools }) => pools,
  registration: {
    config: fakeBlockConfig,
    credentials: reflinkRegistration.credentials,
    fixed: ['file'],
    addresses: () => ({}),
    capabilities: ({ pools, addresses }) =>
      reflinkRegistration.capabilities({ pools, addresses, exporter: { kind: 'tgt', folder: '/' } }),
    share: (parsed, share) => ({ ...parsed, pools: sharedPools(parsed.pools, poolShare(share)) }),
  },
  open: (parsed, _credentials, owner) => openFakeBlockStore(parsed, owner),
};

function openFakeBlockStore(parsed: FakeBlockConfig, owner: ApplianceIdentity): BlockStore {
  const state = FakeState.open(parsed.file);
  const inFlight = new InFlight();
  const { volumes, extents, exporter } = openUnfaulted(state, parsed, owner);
  const late = new LateCalls(state, parsed, owner);
  const port = (name: FaultyPort['port']): FaultyPort => ({
    port: name,
    state,
    keepBack: (...kept) => late.keep(...kept),
  });
  const counted = (methods: Record<string, (...args: unknown[]) => Promise<unknown>>) =>
    Object.fromEntries(
      Object.entries(methods).map(([name, method]) => [
        name,
        (...args: unknown[]) => inFlight.run(() => method(...args)),
      ]),
    );
  const faultyVolumes = {
    ...counted(withFaults(port('volumes'), volumes, volumeMethods(volumes))),
    listImages: (pool, signal, share) => volumes.listImages(pool, signal, share),
    pathOf: image => volumes.pathOf(image),
    close: () => volumes.close(),
  } as Partial<BlockBackend> as BlockBackend;
  const faultyExporter = {
    ...counted(withFaults(port('exporter'), exporter, EXPORTER_METHODS)),
    close: () => exporter.close(),
  } as Partial<Exporter> as Exporter;
  return {
    ...blockStore(faultyVolumes, new FaultyExtents(state, extents, inFlight), faultyExporter),
    close() {
      late.close();
      inFlight.close(() => state.close());
    },
  };
}
