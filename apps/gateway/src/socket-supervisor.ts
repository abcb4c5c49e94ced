import type { ObjectBackendKind } from '#backends/object-backend';
import type { CbtServer } from '#cbt/cbt-server';
import type { CosiServer } from '#cosi/cosi-server';
import type { Config } from '#platform/config/config';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { ProcessContext } from '#platform/process/boot';
import type { Take } from '#protocol/grpc-endpoint';
import type { Endpoint } from '#storage/object/endpoint';
import { endpointOf } from '#storage/object/endpoints';
import { isConfigured } from '#tenancy/endpoints/endpoint-names';
import type { EndpointOptions } from '#tenancy/endpoints/endpoint-registrations';
import type { EndpointSockets, Protocol, SocketPlace } from './endpoint-sockets.js';
import { DOORS_CALM, type GatewayTasks } from './gateway-tasks.js';
import { makeFolder, removeFolder, sweepFolders } from './socket-folders.js';

const LIST = sql(
  'list_endpoints',
  `SELECT tenant_id AS "tenantId", tenant_name AS "tenantName", id AS "endpointId", name, protocol,
          backend_id AS "backendId", backend_kind AS "backendKind", config, driver_name AS "driverName", options, serves
     FROM trivet.list_endpoints()`,
);

const TASK = 'endpoints';

interface EndpointRow {
  tenantId: string;
  tenantName: string;
  endpointId: string;
  name: string;
  protocol: Protocol;
  /** null for csi, as are kind and config. */
  backendId: string | null;
  backendKind: string | null;
  config: unknown;
  driverName: string | null;
  options: EndpointOptions;
  /** Neither it nor its tenant is suspended. */
  serves: boolean;
}

interface Door {
  place: SocketPlace;
  take: Take;
  /** Takes over what has changed; nobody's connection ends for it. */
  follow(row: EndpointRow): void;
  /** Stops accepting at once; resolves when its calls are over. */
  close(): Promise<void>;
}

export interface SupervisorParts {
  database: Database;
  doors: EndpointSockets;
  tasks: GatewayTasks;
  cosi: CosiServer;
  cbt: CbtServer;
  kindOf(kind: string): ObjectBackendKind;
  /** Who serves connections of the sockets of the configuration, while they are open; they have their own followers. */
  configured: Partial<Record<Protocol, () => Take | undefined>>;
}

/**
 * Opens and closes the sockets of the registry, all of its life. A socket that cannot be opened is a problem of that
 * endpoint, shown with it and tried again; of two gateways on a host one serves, and the other takes over when it ends.
 *
 * The folder of a socket stays while its endpoint is registered, also when the gateway stops: a sidecar has it mounted, and
 * a new folder of the same name would be another one to it.
 */
export class SocketSupervisor {
  private readonly open = new Map<string, Door>();
  private running: Promise<void> | undefined;
  private again: Promise<void> | undefined;
  private swept = false;

  constructor(
    private readonly context: Pick<ProcessContext<Config>, 'config' | 'log' | 'shutdown'>,
    private readonly parts: SupervisorParts,
  ) {}

  /** Follows the registry from now on; the first look is over when it resolves. */
  async start(): Promise<void> {
    const { doors, tasks } = this.parts;
    const everyMs = this.context.config.TRIVET_ENDPOINT_CHECK_MS;
    // The next round meets the same error, and says it.
    doors.keptBy(() => this.look().catch(() => {}));
    const run = async () => {
      await this.look();
      return doors.areSettled ? ('calm' as const) : undefined;
    };
    tasks.begin({ name: TASK, everyMs, calm: DOORS_CALM, run });
    await tasks.first(TASK);
  }

  /** One look that begins after this call. A database that is away says nothing about a door. */
  look(): Promise<void> {
    if (!this.running) {
      this.running = this.round().finally(() => {
        this.running = undefined;
      });
      return this.running;
    }
    this.again ??= this.running
      .catch(() => {})
      .then(() => {
        this.again = undefined;
        return this.look();
      });
    return this.again;
  }

  private async round(): Promise<void> {
    const { database, doors } = this.parts;
    const rows = await database.call<EndpointRow>(LIST, []);
    if (this.context.shutdown.stopping) return;
    const wanted = new Map(rows.map(row => [row.endpointId, row]));
    for (const id of [...this.open.keys()]) if (!wanted.has(id)) this.shut(id, { forGood: true });
    doors.keepOnly(new Set(wanted.keys()));
    if (!this.swept) {
      const names = new Set(rows.map(({ tenantName, name }) => `${tenantName}/${name}`));
      await sweepFolders(doors.place('', '', 'cosi').base, names);
      this.swept = true;
    }
    for (const row of rows) await this.follow(row);
  }

  private async follow(row: EndpointRow): Promise<void> {
    const { doors } = this.parts;
    if (isConfigured(row.tenantName, row.name)) {
      doors.set(row, this.stateOfConfigured(row));
      return;
    }
    const door = this.open.get(row.endpointId);
    if (!row.serves) {
      if (door) this.shut(row.endpointId, { forGood: false });
      doors.set(row, { open: false, problem: 'it or its tenant is suspended', wanted: false });
      return;
    }
    try {
      door?.follow(row);
      const opened = door ?? (await this.unlock(row));
      this.open.set(row.endpointId, opened);
      doors.set(row, { open: true, problem: null, wanted: true, take: opened.take });
    } catch (error) {
      const problem = (error as Error).message;
      if (doors.set(row, { open: door !== undefined, problem, wanted: true, take: door?.take }))
        this.context.log.error({ tenantId: row.tenantId, endpoint: row.name, problem }, 'an endpoint has a problem');
    }
  }

  private stateOfConfigured({ protocol, serves }: EndpointRow) {
    const setting = protocol === 'cosi' ? 'COSI_ENDPOINT' : 'TRIVET_CSI_ENDPOINT';
    if (this.parts.doors.configuredPath(protocol) === undefined)
      return { open: false, problem: `${setting} is not set, so it has no socket`, wanted: false };
    const take = this.parts.configured[protocol]?.();
    const open = take !== undefined;
    const problem = open ? null : serves ? 'it is being opened' : 'it or its tenant is suspended';
    return { open, problem, wanted: serves, take };
  }

  private async unlock(row: EndpointRow): Promise<Door> {
    const { log } = this.context;
    const { doors } = this.parts;
    const { protocol, tenantName, name, options } = row;
    const place = doors.place(tenantName, name, protocol);
    for (const taken of ['cosi', 'csi'] as const)
      if (doors.configuredPath(taken) === place.path) throw new Error(`${place.path} is a socket of the configuration`);
    await makeFolder(place, protocol, options.group);
    const socket = { path: place.path, group: options.group, setting: `endpoint ${name}` };
    const door = protocol === 'cosi' ? await this.openCosi(row, socket) : await this.openCsi(row, socket);
    log.info({ tenantId: row.tenantId, endpoint: name, protocol, socket: place.path }, 'an endpoint is open');
    return { place, ...door };
  }

  private async openCosi(row: EndpointRow, socket: { path: string; group?: string; setting: string }) {
    const { cosi } = this.parts;
    const endpoint = this.endpointOf(row);
    const take = await cosi.open(endpoint, socket);
    return {
      take,
      follow: (now: EndpointRow) => void Object.assign(endpoint, this.endpointOf(now)),
      close: () => cosi.closeEndpoint(endpoint.id),
    };
  }

  private endpointOf(row: EndpointRow): Endpoint {
    const { options, driverName, backendId, backendKind } = row;
    const of = { ...row, backendId: backendId!, backendKind: backendKind! };
    const own = { ...options, ...(driverName === null ? {} : { driverName }) };
    return endpointOf(of, this.parts.kindOf(backendKind!), this.context.config, own);
  }

  private async openCsi(row: EndpointRow, socket: { path: string; group?: string; setting: string }) {
    const { config } = this.context;
    let { driverName } = row;
    const door = await this.parts.cbt.openSocket(
      row.tenantId,
      socket,
      () => driverName ?? config.TRIVET_CSI_DRIVER_NAME,
    );
    return {
      follow: (now: EndpointRow) => {
        driverName = now.driverName;
      },
      take: door.take,
      close: () => door.close(config.TRIVET_SHUTDOWN_MS / 2),
    };
  }

  /** Its calls may go on for a while, and nobody waits for them. */
  private shut(id: string, { forGood }: { forGood: boolean }): void {
    const { log } = this.context;
    const door = this.open.get(id)!;
    this.open.delete(id);
    log.warn({ socket: door.place.path }, forGood ? 'an endpoint is removed' : 'an endpoint is suspended');
    void door
      .close()
      .catch(error => log.error({ err: error }, 'an endpoint does not close'))
      .finally(() => forGood && removeFolder(door.place));
  }
}
