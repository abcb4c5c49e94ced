import { azureKind } from '#backends/azure/azure-kind';
import type { BlockBackendKind, BlockStore } from '#backends/block-backend';
import { garageKind } from '#backends/garage/garage-kind';
import { gcsKind } from '#backends/gcs/gcs-kind';
import { meteredBlockStore, meteredObjectBackend } from '#backends/metered';
import type { ApplianceIdentity, BackendCredentials, ObjectBackend, ObjectBackendKind } from '#backends/object-backend';
import { rbdKind } from '#backends/rbd/rbd-kind';
import { reflinkKind } from '#backends/reflink/reflink-kind';
import { rgwKind } from '#backends/rgw/rgw-kind';
import { s3Kind } from '#backends/s3/s3-kind';
import { StorageError } from '#platform/errors';

export type { BackendCheck, Registration, Share } from '#backends/registration';

const objectKinds: ObjectBackendKind[] = [
  rgwKind as ObjectBackendKind,
  s3Kind as ObjectBackendKind,
  azureKind as ObjectBackendKind,
  garageKind as ObjectBackendKind,
  gcsKind as ObjectBackendKind,
];
const blockKinds: BlockBackendKind[] = [reflinkKind as BlockBackendKind, rbdKind as BlockBackendKind];

/** Kinds of object store that this process knows. */
export const objectBackendKinds = (): readonly ObjectBackendKind[] => objectKinds;

/** Kinds of block store that this process knows. */
export const blockBackendKinds = (): readonly BlockBackendKind[] => blockKinds;

/** For entry points of tests alone, before the process starts: its fakes. */
export function addBackendKinds(further: { object: ObjectBackendKind[]; block: BlockBackendKind[] }): void {
  objectKinds.push(...further.object);
  blockKinds.push(...further.block);
}

export const objectBackendKind = (kinds: readonly ObjectBackendKind[], name: string): ObjectBackendKind =>
  kindNamed(kinds, name);

export const blockBackendKind = (kinds: readonly BlockBackendKind[], name: string): BlockBackendKind =>
  kindNamed(kinds, name);

function kindNamed<Kind extends { kind: string }>(kinds: readonly Kind[], name: string): Kind {
  const kind = kinds.find(candidate => candidate.kind === name);
  if (!kind) throw new StorageError('internal', `no backend of kind ${name} in this process`, { retry: 'never' });
  return kind;
}

/** A row of the registry of backends, opened: `version` grows with each change of config or credentials. */
export interface BackendRow {
  tenantId: string;
  backendId: string;
  version: number;
  kind: string;
  config: unknown;
  credentials: BackendCredentials;
}

type Backend = ObjectBackend | BlockStore;

/** What the registry needs of ObjectBackendKind and BlockBackendKind. */
export interface OpeningKind<B extends Backend> {
  readonly kind: string;
  parseConfig(config: unknown): unknown;
  open(config: unknown, credentials: BackendCredentials, owner: ApplianceIdentity): B;
}

/** Keeps one open adapter for each row, so that connections are reused; a new version replaces the old one. */
export class BackendRegistry<B extends Backend = ObjectBackend> {
  readonly #open = new Map<string, { version: number; backend: B }>();

  constructor(
    private readonly kinds: readonly OpeningKind<B>[],
    private readonly applianceId: string,
  ) {}

  knows(kind: string): boolean {
    return this.kinds.some(known => known.kind === kind);
  }

  /** The adapter for this row. A row older than the open one is a stale read, and gets the open one. */
  open(row: BackendRow): B {
    const key = JSON.stringify([row.tenantId, row.backendId]);
    const known = this.#open.get(key);
    if (known && known.version >= row.version) return known.backend;
    const kind = kindNamed(this.kinds, row.kind);
    const owner: ApplianceIdentity = { applianceId: this.applianceId, tenantId: row.tenantId };
    const opened = kind.open(kind.parseConfig(row.config), row.credentials, owner);
    const backend = metered(row.kind, opened);
    this.#open.set(key, { version: row.version, backend });
    known?.backend.close();
    return backend;
  }

  /** Calls under way end by themselves. */
  close(): void {
    for (const { backend } of this.#open.values()) backend.close();
    this.#open.clear();
  }
}

const metered = <B extends Backend>(kind: string, backend: B): B =>
  ('volumes' in backend ? meteredBlockStore(kind, backend) : meteredObjectBackend(kind, backend)) as B;
