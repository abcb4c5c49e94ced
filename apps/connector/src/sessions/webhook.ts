import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Listen } from '#platform/config/setting-forms';
import type { Logger } from '#platform/logging/log';
import { AtOnce } from '../at-once.js';
import type { KeyFile } from '../kube/key-files.js';
import type { AccessReviews } from './access-reviews.js';
import { type Review, readReview } from './admission-review.js';
import type { CreatorRecords } from './creator-record.js';
import { CREATOR_ANNOTATION, MAX_SNAPSHOTS } from './resources.js';

const ANSWER_MS = 8_000;
/** Others wait with their bodies unread. */
const AT_ONCE = 16;
/** Each holds memory for TLS, also before it asks; API servers keep a few. */
const MAX_CONNECTIONS = 256;
/** An API server forgets a connection after 90 s without a request; who closes it sooner may do so under the next one. */
const KEEP_ALIVE_MS = 120_000;

type Verdict = { allowed: true; patch?: object[] } | { allowed: false; code: number; message: string };

export interface WebhookParts {
  access: AccessReviews;
  records: () => CreatorRecords;
  /** The cluster's clock. */
  now: () => number | Promise<number>;
  log: Logger;
}

/**
 * Admission of SnapshotSessionRequests (admission.k8s.io/v1). `/mutate` writes down who creates one; `/validate` refuses who may not read the
 * VolumeSnapshots that are named, and who would change what was written down. When it cannot know it does not answer 200, which is a
 * refusal by `failurePolicy: Fail`.
 */
export class SessionWebhook {
  private readonly connections = new Set<Socket>();
  private readonly replies = new Set<ServerResponse>();
  private whenAnswered = (): void => {};

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {
    // Below TLS: also those that have not spoken yet.
    server.on('connection', (socket: Socket) => {
      this.connections.add(socket);
      socket.once('close', () => this.connections.delete(socket));
    });
    server.on('request', (_, reply: ServerResponse) => {
      this.replies.add(reply);
      reply.once('close', () => {
        this.replies.delete(reply);
        if (this.replies.size === 0) this.whenAnswered();
      });
    });
  }

  static async open(parts: WebhookParts, pair: KeyFile, { host, port }: Listen): Promise<SessionWebhook> {
    const answers = new AtOnce(AT_ONCE);
    const server = createServer({ ...pair, minVersion: 'TLSv1.2' }, (request, reply) => {
      answers
        .run(() => answer(parts, request))
        .then(
          ({ code, body }) => {
            // What was not read of the request cannot be told from the next one, and who stops takes no next one.
            const headers = {
              'content-type': 'application/json',
              ...(request.complete && server.listening ? {} : { connection: 'close' }),
            };
            reply.writeHead(code, headers).end(JSON.stringify(body));
          },
          error => fail(parts.log, reply, error),
        );
    });
    server.requestTimeout = ANSWER_MS;
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    server.maxConnections = MAX_CONNECTIONS;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
    return new SessionWebhook(server, (server.address() as AddressInfo).port);
  }

  use(pair: KeyFile): void {
    this.server.setSecureContext({ ...pair, minVersion: 'TLSv1.2' });
  }

  /** Takes no more connections, answers what was asked, and cuts what is left after `graceMs`. */
  async close(graceMs = 0): Promise<void> {
    const closed = new Promise(resolve => this.server.close(resolve));
    const answered = new Promise<void>(resolve => {
      this.whenAnswered = resolve;
    });
    if (this.replies.size > 0) await Promise.race([answered, delay(graceMs, undefined, { ref: false })]);
    for (const socket of this.connections) socket.destroy();
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
  if (typeof asked === 'number') return { code: asked, body: {} };
  const verdict = refused(asked) ?? (await (pathname === '/mutate' ? mutate(parts, asked) : validate(parts, asked)));
  const { uid } = asked;
  const response = verdict.allowed
    ? { uid, allowed: true, ...(verdict.patch ? patchOf(verdict.patch) : {}) }
    : { uid, allowed: false, status: { code: verdict.code, message: verdict.message } };
  return { code: 200, body: { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response } };
}

/** As the schema says it; the first webhook is asked before that is looked at. */
function refused({ names: { length } }: Review): Verdict | undefined {
  if (length <= MAX_SNAPSHOTS) return undefined;
  return {
    allowed: false,
    code: 422,
    message: `spec.snapshots: Too many: ${length}: must have at most ${MAX_SNAPSHOTS} items`,
  };
}

const patchOf = (patch: object[]) => ({
  patchType: 'JSONPatch',
  patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
});

async function mutate(
  { records, now }: WebhookParts,
  { operation, namespace, user, names, hasAnnotations }: Review,
): Promise<Verdict> {
  if (operation !== 'CREATE' || !namespace) return { allowed: true };
  const value = records().write(user, namespace, names, await now());
  const path = `/metadata/annotations/${CREATOR_ANNOTATION.replaceAll('/', '~1')}`;
  const folder = hasAnnotations ? [] : [{ op: 'add', path: '/metadata/annotations', value: {} }];
  return { allowed: true, patch: [...folder, { op: 'add', path, value }] };
}

async function validate({ access }: WebhookParts, asked: Review): Promise<Verdict> {
  const { operation, namespace, user, names, creator } = asked;
  if (operation === 'UPDATE') {
    if (creator.now === creator.before) return { allowed: true };
    return { allowed: false, code: 403, message: `annotation ${CREATOR_ANNOTATION} cannot be changed` };
  }
  if (operation !== 'CREATE' || !namespace) return { allowed: true };
  const [denied] = await access.denied(user, namespace, names, AbortSignal.timeout(ANSWER_MS));
  if (denied === undefined) return { allowed: true };
  const message = `${user.username} may not read VolumeSnapshot ${denied} in ${namespace}`;
  return { allowed: false, code: 403, message };
}
