import { join, resolve } from 'node:path';
import type { Config } from '#platform/config/config';
import type { Take } from '#protocol/grpc-endpoint';
import type { DoorView, EndpointDoors } from '#tenancy/endpoints/endpoint-doors';
import { isConfigured } from '#tenancy/endpoints/endpoint-names';
import type { EndpointView } from '#tenancy/endpoints/endpoint-registrations';

export type Protocol = 'cosi' | 'csi';

/** Where the socket of an endpoint is: alone in a folder of its own, which belongs to the sidecar. */
export interface SocketPlace {
  base: string;
  tenantFolder: string;
  folder: string;
  path: string;
}

interface DoorState {
  open: boolean;
  problem: string | null;
  /** It is to be served here: neither it nor its tenant is suspended, and it has a path. */
  wanted: boolean;
  /** Serves connections that came in elsewhere, while it is open. */
  take?: Take | undefined;
}

/** Of which row. */
export interface DoorOf {
  endpointId: string;
  tenantId: string;
  tenantName: string;
  name: string;
  protocol: Protocol;
}

/** A socket that is to be served here. */
export interface WantedDoor {
  /** `tenant/endpoint` */
  label: string;
  path: string;
  problem: string | null;
}

const FOLLOW_MS = 2_000;
const NOT_YET = { open: false, problem: 'no gateway has looked at it yet' };

/** What this gateway knows of its sockets, for the admin API. SocketSupervisor writes it. */
export class EndpointSockets implements EndpointDoors {
  private readonly states = new Map<string, { of: DoorOf; state: DoorState }>();
  private manager: (() => Promise<void>) | undefined;

  constructor(private readonly config: Config) {}

  place(tenant: string, name: string, protocol: Protocol): SocketPlace {
    const base = this.config.TRIVET_SOCKET_DIR ?? resolve(this.config.TRIVET_HOME, 'run', 'endpoints');
    const tenantFolder = join(base, tenant);
    const folder = join(tenantFolder, name);
    return { base, tenantFolder, folder, path: join(folder, `${protocol}.sock`) };
  }

  /** Of COSI_ENDPOINT and TRIVET_CSI_ENDPOINT. */
  configuredPath(protocol: Protocol): string | undefined {
    return protocol === 'cosi' ? this.config.COSI_ENDPOINT : this.config.TRIVET_CSI_ENDPOINT;
  }

  show(tenant: string, { id, name, protocol, driverName, options, state }: EndpointView): DoorView {
    const { config } = this;
    const isCosi = protocol === 'cosi';
    const usual = isCosi ? config.TRIVET_COSI_DRIVER_NAME : config.TRIVET_CSI_DRIVER_NAME;
    const configured = isConfigured(tenant, name);
    const ours = configured ? (isCosi ? config.TRIVET_COSI_SOCKET_GROUP : config.TRIVET_CSI_SOCKET_GROUP) : undefined;
    const known = this.states.get(id)?.state ?? NOT_YET;
    return {
      socket: configured ? (this.configuredPath(protocol) ?? '') : this.place(tenant, name, protocol).path,
      driverName: driverName ?? usual,
      group: options.group ?? ours ?? null,
      open: known.open,
      problem: !known.open && state === 'suspended' ? 'it is suspended' : known.problem,
    };
  }

  async follow(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>(done => {
      timer = setTimeout(done, FOLLOW_MS);
    });
    await Promise.race([this.manager?.(), late]).finally(() => clearTimeout(timer));
  }

  /** @param manager opens and closes by the registry, and does not reject */
  keptBy(manager: () => Promise<void>): void {
    this.manager = manager;
  }

  /** Those of a tenant, or all. */
  wanted(protocol: Protocol, tenantId?: string): WantedDoor[] {
    const seen = [...this.states.values()].filter(
      ({ of, state }) =>
        of.protocol === protocol && state.wanted && (tenantId === undefined || of.tenantId === tenantId),
    );
    return seen.map(({ of: { tenantName, name }, state: { problem } }) => ({
      label: `${tenantName}/${name}`,
      path: isConfigured(tenantName, name)
        ? (this.configuredPath(protocol) ?? '')
        : this.place(tenantName, name, protocol).path,
      problem,
    }));
  }

  /** Who serves connections for this endpoint here; undefined: nobody. */
  takerOf(tenantId: string, endpoint: string): Take | undefined {
    for (const { of, state } of this.states.values())
      if (of.tenantId === tenantId && of.name === endpoint) return state.take;
    return undefined;
  }

  /** True: it was another before. */
  set(of: DoorOf, state: DoorState): boolean {
    const before = this.states.get(of.endpointId)?.state;
    this.states.set(of.endpointId, { of, state });
    return before?.open !== state.open || before.problem !== state.problem;
  }

  /** Each is open that should be, and no other. */
  get areSettled(): boolean {
    return [...this.states.values()].every(({ state }) => state.open === state.wanted);
  }

  /** Keeps those that are in the registry. */
  keepOnly(ids: ReadonlySet<string>): void {
    for (const id of this.states.keys()) if (!ids.has(id)) this.states.delete(id);
  }
}
