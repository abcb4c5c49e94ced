import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Listen } from '#platform/config/config';
import type { Logger } from '#platform/logging/log';
import type { KeyFile } from '../kube/key-files.js';
import type { AccessReviews, UserInfo } from './access-reviews.js';
import type { CreatorRecords } from './creator-record.js';
import { CREATOR_ANNOTATION, type SessionRequest } from './resources.js';

/** What etcd takes as one object, and more. */
const MAX_BODY = 3 * 1024 * 1024;
const ANSWER_MS = 8_000;

interface AdmissionRequest {
  uid: string;
  operation: string;
  namespace?: string;
  userInfo: UserInfo;
  object: SessionRequest | null;
  oldObject: SessionRequest | null;
}

type Verdict = { allowed: true; patch?: object[] } | { allowed: false; message: string };

export interface WebhookParts {
  access: AccessReviews;
  records: () => CreatorRecords;
  /** The cluster's clock. */
  now: () => number;
  log: Logger;
}

/**
 * Admission of SnapshotSessionRequests (admission.k8s.io/v1). `/mutate` writes down who creates one; `/validate` refuses who may not read the
 * VolumeSnapshots that are named, and who would change what was written down. When it cannot know it does not answer 200, which is a
 * refusal by `failurePolicy: Fail`.
 */
export class SessionWebhook {
  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  static async open(parts: WebhookParts, pair: KeyFile, { host, port }: Listen): Promise<SessionWebhook> {
    const server = createServer({ ...pair, minVersion: 'TLSv1.2' }, (request, reply) => {
      answer(parts, request).then(
        ({ code, body }) => reply.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
        error => fail(parts.log, reply, error),
      );
    });
    server.requestTimeout = ANSWER_MS;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
    return new SessionWebhook(server, (server.address() as AddressInfo).port);
  }

  use(pair: KeyFile): void {
    this.server.setSecureContext({ ...pair, minVersion: 'TLSv1.2' });
  }

  async close(): Promise<void> {
    const closed = new Promise(resolve => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }
}

function fail(log: Logger, reply: ServerResponse, error: unknown): void {
  log.warn({ err: error }, 'a request for admission was not answered');
  reply.writeHead(500, { 'content-type': 'text/plain' }).end('it is not known now who may read these VolumeSnapshots');
}

async function answer(parts: WebhookParts, request: IncomingMessage): Promise<{ code: number; body: object }> {
  const { pathname } = new URL(request.url ?? '', 'https://webhook');
  if (request.method !== 'POST' || (pathname !== '/mutate' && pathname !== '/validate')) return { code: 404, body: {} };
  const asked = await readReview(request);
  if (!asked) return { code: 400, body: {} };
  const verdict = pathname === '/mutate' ? mutate(parts, asked) : await validate(parts, asked);
  const { uid } = asked;
  const response = verdict.allowed
    ? { uid, allowed: true, ...(verdict.patch ? patchOf(verdict.patch) : {}) }
    : { uid, allowed: false, status: { code: 403, message: verdict.message } };
  return { code: 200, body: { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response } };
}

const patchOf = (patch: object[]) => ({
  patchType: 'JSONPatch',
  patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
});

async function readReview(request: IncomingMessage): Promise<AdmissionRequest | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > MAX_BODY) return undefined;
    chunks.push(chunk as Buffer);
  }
  try {
    const { request: asked } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { request?: AdmissionRequest };
    return typeof asked?.uid === 'string' && typeof asked.userInfo?.username === 'string' ? asked : undefined;
  } catch {
    return undefined;
  }
}

/** Before the schema was looked at: what is no list of names is for the API server to refuse. */
const namesOf = (object: SessionRequest | null): string[] =>
  Array.isArray(object?.spec?.snapshots) ? object.spec.snapshots.map(String) : [];

function mutate({ records, now }: WebhookParts, { operation, namespace, userInfo, object }: AdmissionRequest): Verdict {
  if (operation !== 'CREATE' || !object || !namespace) return { allowed: true };
  const value = records().write(userInfo, namespace, namesOf(object), now());
  const path = `/metadata/annotations/${CREATOR_ANNOTATION.replaceAll('/', '~1')}`;
  const folder = object.metadata?.annotations ? [] : [{ op: 'add', path: '/metadata/annotations', value: {} }];
  return { allowed: true, patch: [...folder, { op: 'add', path, value }] };
}

async function validate({ access }: WebhookParts, asked: AdmissionRequest): Promise<Verdict> {
  const { operation, namespace, userInfo, object, oldObject } = asked;
  if (operation === 'UPDATE') {
    const written = (of: SessionRequest | null) => of?.metadata.annotations?.[CREATOR_ANNOTATION];
    if (written(object) === written(oldObject)) return { allowed: true };
    return { allowed: false, message: `annotation ${CREATOR_ANNOTATION} cannot be changed` };
  }
  if (operation !== 'CREATE' || !namespace) return { allowed: true };
  const [denied] = await access.denied(userInfo, namespace, namesOf(object), AbortSignal.timeout(ANSWER_MS));
  if (denied === undefined) return { allowed: true };
  return { allowed: false, message: `${userInfo.username} may not read VolumeSnapshot ${denied} in ${namespace}` };
}
