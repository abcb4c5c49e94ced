import type { BlockBackendKind, BlockStore } from '#backends/block-backend';
import type { ApplianceIdentity, BackendCredentials, ObjectBackend, ObjectBackendKind } from '#backends/object-backend';
import { objectBackendKind, type Registration } from '#backends/registry';
import { StorageError } from '#platform/errors';

export type KnownKind = { kind: string } & Pick<Registration, 'config' | 'credentials'>;

/** The kinds of backend that this process knows, of either sort. */
export class BackendKinds {
  constructor(
    private readonly objectKinds: readonly ObjectBackendKind[],
    private readonly blockKinds: readonly BlockBackendKind[],
  ) {}

  /** Those of this process, each with the forms that its adapter parses. */
  all(): KnownKind[] {
    return [...this.objectKinds, ...this.blockKinds].map(({ kind, registration: { config, credentials } }) => ({
      kind,
      config,
      credentials,
    }));
  }

  require(kind: string): Registration {
    const found = this.find(kind);
    if (found) return found;
    const known = [...this.objectKinds, ...this.blockKinds].map(each => each.kind).join(', ');
    throw new StorageError('invalid_argument', `kind: there is no kind ${kind} of backend; there are ${known}`, {
      field: 'kind',
    });
  }

  /** null: the kind is not known here, or the configuration is not one of it. */
  capabilitiesOf({ kind, config }: { kind: string; config: unknown }): Record<string, unknown> | null {
    const registration = this.find(kind);
    const parsed = registration?.config.safeParse(config);
    return parsed?.success ? registration!.capabilities(parsed.data) : null;
  }

  /** Names of the pools of a configuration; undefined for kinds that have none. */
  poolsOf(kind: string, config: unknown): string[] | undefined {
    const found = this.blockKinds.find(known => known.kind === kind);
    return found?.pools(found.parseConfig(config)).map(({ name }) => name);
  }

  /** Whose pools every storage host reaches. */
  isOfCluster(kind: string): boolean {
    return this.blockKinds.find(known => known.kind === kind)?.isOfCluster ?? false;
  }

  /** Of a configuration as `checkedConfig` gives it. The caller closes it. */
  open(
    kind: string,
    config: unknown,
    credentials: BackendCredentials,
    owner: ApplianceIdentity,
  ): ObjectBackend | BlockStore {
    const blocks = this.blockKinds.find(known => known.kind === kind);
    if (blocks) return blocks.open(blocks.parseConfig(config), credentials, owner);
    const objects = objectBackendKind(this.objectKinds, kind);
    return objects.open(objects.parseConfig(config), credentials, owner);
  }

  private find(kind: string): Registration | undefined {
    return [...this.objectKinds, ...this.blockKinds].find(known => known.kind === kind)?.registration;
  }
}
