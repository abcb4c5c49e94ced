import 'reflect-metadata';
import { createPublicKey, webcrypto } from 'node:crypto';
import { connect, type TLSSocket } from 'node:tls';
import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js';
import * as x509 from '@peculiar/x509';
import {
  type CertificateReply,
  ENROLMENT,
  endpointName,
  GATEWAY_NAME,
  type ReportReply,
  type ReportRequest,
} from '#protocol/enrolment';

const CURVE = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

export interface Identity {
  key: string;
  certificate: string;
}

export interface KeyAndRequest {
  key: string;
  request: string;
}

/** A key of the cluster's own, and the request for a certificate of it. */
export async function newKey(): Promise<KeyAndRequest> {
  const { privateKey } = await webcrypto.subtle.generateKey(CURVE, true, ['sign', 'verify']);
  const key = x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', privateKey), 'PRIVATE KEY');
  return { key, request: await requestOf(key) };
}

/** The request for a certificate of this private key (PEM). */
export async function requestOf(key: string): Promise<string> {
  const [raw] = x509.PemConverter.decode(key);
  const privateKey = await webcrypto.subtle.importKey('pkcs8', raw!, CURVE, true, ['sign']);
  const spki = createPublicKey(key).export({ type: 'spki', format: 'der' });
  const publicKey = await webcrypto.subtle.importKey('spki', spki, CURVE, true, ['verify']);
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: 'CN=whoever I like, O=another tenant',
    keys: { privateKey, publicKey },
    signingAlgorithm: CURVE,
  });
  return request.toString('pem');
}

/** A stock client of the door, which trusts the authority that it was given. */
export class ClusterClient {
  constructor(
    private readonly port: number,
    private readonly authority: string,
    private readonly identity?: Identity,
  ) {}

  async join(token: string, { key, request }: KeyAndRequest): Promise<{ code: string; identity: Identity }> {
    const { code, reply } = await this.enrol(ENROLMENT.Join, { token, request, release: '1.2.3' });
    return { code, identity: { key, certificate: (reply as CertificateReply | undefined)?.certificate ?? '' } };
  }

  async renew({ key, request }: KeyAndRequest): Promise<{ code: string; identity: Identity }> {
    const { code, reply } = await this.enrol(ENROLMENT.Renew, { request, release: '1.2.4' });
    return { code, identity: { key, certificate: (reply as CertificateReply | undefined)?.certificate ?? '' } };
  }

  async report(request: Partial<ReportRequest>): Promise<{ code: string; renew: boolean | undefined }> {
    const { code, reply } = await this.enrol(ENROLMENT.Report, { release: '1.2.3', ...request });
    return { code, renew: (reply as ReportReply | undefined)?.renew };
  }

  /** `served`: the gateway has begun to speak HTTP/2; `refused`: it closed the connection before that. */
  async knock(tenantId: string, endpoint: string): Promise<{ outcome: 'served' | 'refused'; socket: TLSSocket }> {
    const socket = connect({
      port: this.port,
      host: '127.0.0.1',
      servername: endpointName({ tenantId, endpoint }),
      ca: this.authority,
      ALPNProtocols: ['h2'],
      checkServerIdentity: () => undefined,
      ...(this.identity && { key: this.identity.key, cert: this.identity.certificate }),
    });
    socket.on('error', () => {});
    const outcome = await new Promise<'served' | 'refused'>(resolve => {
      socket.once('data', () => resolve('served'));
      socket.once('close', () => resolve('refused'));
    });
    return { outcome, socket };
  }

  private enrol(
    method: {
      path: string;
      requestSerialize: (value: never) => Buffer;
      responseDeserialize: (bytes: Buffer) => unknown;
    },
    request: object,
  ): Promise<{ code: string; reply?: unknown }> {
    const { identity } = this;
    const [key, cert] = identity ? [Buffer.from(identity.key), Buffer.from(identity.certificate)] : [null, null];
    const client = new Client(`127.0.0.1:${this.port}`, credentials.createSsl(Buffer.from(this.authority), key, cert), {
      'grpc.ssl_target_name_override': GATEWAY_NAME,
      'grpc.use_local_subchannel_pool': 1,
    });
    return new Promise(resolve => {
      const { path, requestSerialize, responseDeserialize } = method;
      const done = (error: ServiceError | null, reply?: unknown): void => {
        client.close();
        resolve({ code: status[error?.code ?? status.OK] as string, reply });
      };
      client.makeUnaryRequest(
        path,
        requestSerialize as (value: object) => Buffer,
        responseDeserialize,
        request,
        { deadline: Date.now() + 20_000 },
        done,
      );
    });
  }
}
