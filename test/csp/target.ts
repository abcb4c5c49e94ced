/**
 * What the conformance suite runs against: the address of a gateway, and a login. The same cases run on the room alone and
 * on the whole appliance.
 */
export interface CspTarget {
  /** http://host:port */
  url: string;
  contextPath: string;
  username: string;
  password: string;
  /** Name of the tenant's backend, as `array_ip` takes it. */
  arrayIp: string;
  /** The initiator of a host that may be published to; what it is reached by is not looked at. */
  initiator: string;
  close(): Promise<void>;
}

export type CspSetup = () => Promise<CspTarget>;
