import { join } from 'node:path';
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { PACKAGE_ROOT } from '#platform/package-root';
import { isUuid } from '#platform/uuid';

/** What gateways and connectors agree on: how a cluster is enrolled, and how a connection says which endpoint it is for. */
export interface JoinRequest {
  token: string;
  /** PKCS #10, PEM. */
  request: string;
  release: string;
}
export type RenewRequest = Omit<JoinRequest, 'token'>;
export interface ReportRequest {
  release: string;
  /** Of its host or pod. */
  name: string;
  /** By endpoints. */
  connections: Readonly<Record<string, number>>;
}
export interface ReportReply {
  /** The certificate of this connection is to be replaced now. */
  renew: boolean;
}
export interface CertificateReply {
  /** PEM. */
  certificate: string;
}

type Method<Request, Reply> = MethodDefinition<Request, Reply>;
interface Enrolment {
  Join: Method<JoinRequest, CertificateReply>;
  Renew: Method<RenewRequest, CertificateReply>;
  Report: Method<ReportRequest, ReportReply>;
}

const loaded = loadSync(join(PACKAGE_ROOT, 'proto', 'trivet', 'enrolment.proto'), { defaults: true });
export const ENROLMENT = loaded['trivet.clusters.v1.Enrolment'] as unknown as Enrolment;
export const ENROLMENT_SERVICE = ENROLMENT as unknown as ServiceDefinition;

const DOMAIN = 'trivet.internal';
/** What each gateway's certificate is for, and what a connection asks for (SNI) that is for the gateway itself. */
export const GATEWAY_NAME = `gateway.${DOMAIN}`;

/** The endpoint that a connection is for: it is asked for by the name of the server, before any byte of gRPC. */
export interface AskedEndpoint {
  tenantId: string;
  endpoint: string;
}

export const endpointName = ({ tenantId, endpoint }: AskedEndpoint): string => `${endpoint}.${tenantId}.${DOMAIN}`;

/** undefined: it is the name of no endpoint. */
export function readEndpointName(name: string): AskedEndpoint | undefined {
  if (!name.endsWith(`.${DOMAIN}`)) return undefined;
  const [endpoint = '', tenantId = '', ...more] = name.slice(0, -DOMAIN.length - 1).split('.');
  return endpoint !== '' && isUuid(tenantId) && more.length === 0 ? { tenantId, endpoint } : undefined;
}
