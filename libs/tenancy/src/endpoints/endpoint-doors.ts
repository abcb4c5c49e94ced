import type { EndpointView } from '#tenancy/endpoints/endpoint-registrations';

/** A socket as the gateway has it that is asked. */
export interface DoorView {
  /** Path; '' for one of the configuration that has none. */
  socket: string;
  driverName: string;
  /** Who may connect beside root. */
  group: string | null;
  open: boolean;
  /** Why it is not open. */
  problem: string | null;
}

export interface EndpointDoors {
  show(tenant: string, endpoint: EndpointView): DoorView;
  /** Opens and closes by the registry now, and not only at the next check. Never rejects; bounded. */
  follow(): Promise<void>;
}
