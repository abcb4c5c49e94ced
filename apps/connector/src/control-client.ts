import { join } from 'node:path';
import { Client, credentials, type MethodDefinition, type ServiceError } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { Listen } from '#platform/config/setting-forms';
import { PACKAGE_ROOT } from '#platform/package-root';
import { CLUSTER_SESSIONS, type OpenedSession, type OpenSessionRequest } from '#protocol/cluster-sessions';
import { ENROLMENT, GATEWAY_NAME, type ReportReply, type ReportRequest } from '#protocol/enrolment';

const CALL_MS = 3_000;

/** Of the package its file alone: its code brings another copy of the loader and of protobuf.js. */
const HEALTH = join(PACKAGE_ROOT, 'node_modules', 'grpc-health-check', 'proto', 'health', 'v1', 'health.proto');
const health = loadSync(HEALTH, { enums: String, defaults: true })['grpc.health.v1.Health'] as unknown as {
  Check: MethodDefinition<{ service: string }, { status: string }>;
};

/** By which a connector is known; before it has joined, by nothing. */
export interface Credentials {
  authority: string;
  key?: string;
  certificate?: string;
}

/** What is for a gateway itself. */
export class ControlClient {
  private readonly client: Client;

  constructor({ host, port }: Listen, { authority, key, certificate }: Credentials) {
    const [own, chain] = key && certificate ? [Buffer.from(key), Buffer.from(certificate)] : [null, null];
    const secured = credentials.createSsl(Buffer.from(authority), own, chain);
    this.client = new Client(host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`, secured, {
      'grpc.ssl_target_name_override': GATEWAY_NAME,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.max_reconnect_backoff_ms': CALL_MS,
    });
  }

  async join(token: string, request: string, release: string): Promise<string> {
    return (await this.call(ENROLMENT.Join, { token, request, release })).certificate;
  }

  async renew(request: string, release: string): Promise<string> {
    return (await this.call(ENROLMENT.Renew, { request, release })).certificate;
  }

  report(request: ReportRequest): Promise<ReportReply> {
    return this.call(ENROLMENT.Report, request);
  }

  async isReady(): Promise<boolean> {
    return (await this.call(health.Check, { service: '' })).status === 'SERVING';
  }

  openSession(request: OpenSessionRequest, signal?: AbortSignal): Promise<OpenedSession> {
    return this.call(CLUSTER_SESSIONS.Open, request, signal);
  }

  async closeSession(name: string, signal?: AbortSignal): Promise<void> {
    await this.call(CLUSTER_SESSIONS.Close, { name }, signal);
  }

  close(): void {
    this.client.close();
  }

  private call<Request, Reply>(
    method: MethodDefinition<Request, Reply>,
    request: Request,
    signal?: AbortSignal,
  ): Promise<Reply> {
    const { path, requestSerialize, responseDeserialize } = method;
    const options = { deadline: Date.now() + CALL_MS };
    return new Promise((resolve, reject) => {
      const cancel = () => call.cancel();
      const done = (error: ServiceError | null, reply?: Reply) => {
        signal?.removeEventListener('abort', cancel);
        if (error) reject(error);
        else resolve(reply!);
      };
      const call = this.client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, options, done);
      signal?.addEventListener('abort', cancel);
    });
  }
}
