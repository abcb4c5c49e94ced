/** What the conformance suites of exporters share: images, hosts that really log in, and targets of their own. */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { ImageRef } from '#backends/block-backend';
import type {
  AppliedTarget,
  DaemonRef,
  Exporter,
  Initiator,
  ObservedTarget,
  TargetSpec,
  UnitIdentity,
} from '#backends/exporter';
import type { ErrorKind } from '#platform/errors';
import { unleased } from '#platform/lease-signal';

/** A host's session on one unit. */
export interface ExporterSession {
  write(offset: number, data: Buffer): Promise<void>;
  read(offset: number, length: number): Promise<Buffer>;
  capacity(): Promise<number>;
  /** The NAA that the host takes for the identity of the disk, lower-case hex. */
  serialNumber(): Promise<string>;
  readonly isOpen: boolean;
  /** Resolves when the session has ended, whoever ended it. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

export interface ExporterHarness {
  exporter: Exporter;
  /** The same exporter in another process. */
  another: Exporter;
  /** With a portal of its own; the harness ends what still runs. */
  newDaemon(): Promise<DaemonRef>;
  makeImage(sizeBytes: number): Promise<ImageRef>;
  growImage(image: ImageRef, sizeBytes: number): Promise<void>;
  removeImage(image: ImageRef): Promise<void>;
  readImage(image: ImageRef, offset: number, length: number): Promise<Buffer>;
  /** Rejects when the target refuses. */
  login(spec: TargetSpec, initiator: Initiator): Promise<ExporterSession>;
  /** Like kill -9. */
  killDaemon(daemon: DaemonRef): Promise<void>;
  /** Like SIGSTOP, for longer than a group's cut takes. */
  stallDaemon(daemon: DaemonRef): Promise<void>;
  close(): Promise<void>;
}

export const MIB = 2 ** 20;
export const SIZE = 64 * MIB;
export const soon = () => unleased(AbortSignal.timeout(60_000));

/** Tids are unique over the appliance. */
let lastTid = 100;
export const newTid = (): number => ++lastTid;

export const host = (chap?: Initiator['chap']): Initiator => {
  const iqn = `iqn.2026-01.example:${randomUUID()}`;
  return chap ? { iqn, chap } : { iqn };
};
export const account = () => ({ user: `user-${randomUUID().slice(0, 8)}`, password: randomUUID().slice(0, 16) });

export const failsWith = (promise: Promise<unknown>, kind: ErrorKind, more: object = {}): Promise<void> =>
  expect(promise).rejects.toMatchObject({ name: 'StorageError', kind, ...more });

/** One harness for a file, with a daemon that runs. */
const IDENTITY: UnitIdentity = { vendor: 'TRIVET', product: 'VOLUME', unitSerial: 'naa' };

export class ExporterWorld {
  harness!: ExporterHarness;
  daemon!: DaemonRef;
  readonly #sessions: ExporterSession[] = [];
  #fence = 0;

  constructor(setup: () => Promise<ExporterHarness>) {
    beforeAll(async () => {
      this.harness = await setup();
      this.daemon = await this.harness.newDaemon();
      await this.exporter.ensureDaemon(this.daemon, soon());
    });
    afterEach(async () => {
      for (const session of this.#sessions.splice(0)) if (session.isOpen) await session.close();
    });
    afterAll(() => this.harness?.close());
  }

  get exporter(): Exporter {
    return this.harness.exporter;
  }

  readonly nextFence = (): string => String(++this.#fence);

  readonly newSpec = async (initiators: Initiator[]): Promise<TargetSpec> => {
    const id = randomUUID();
    const image = await this.harness.makeImage(SIZE);
    const iqn = `iqn.2026-01.dev.trivet:${id}`;
    return { daemon: this.daemon, tid: newTid(), iqn, lun: 1, image, volumeId: id, identity: IDENTITY, initiators };
  };

  readonly apply = (spec: TargetSpec): Promise<AppliedTarget> =>
    this.exporter.applyTarget(spec, this.nextFence(), soon());

  readonly remove = (spec: TargetSpec, force: boolean) =>
    this.exporter.removeTarget(spec, { force }, this.nextFence(), soon());

  /** A session that is closed after the test. */
  readonly login = async (spec: TargetSpec, initiator: Initiator): Promise<ExporterSession> => {
    const session = await this.harness.login(spec, initiator);
    this.#sessions.push(session);
    return session;
  };

  readonly observed = async (spec: TargetSpec): Promise<ObservedTarget | undefined> =>
    (await this.exporter.listTargets(this.daemon, soon())).find(({ iqn }) => iqn === spec.iqn);
}
