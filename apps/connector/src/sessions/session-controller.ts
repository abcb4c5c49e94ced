import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '#platform/logging/log';
import { type KubeClient, KubeError, type WatchEvent } from '../kube/kube-client.js';
import { Backlog } from './backlog.js';
import { DATA, keyOf, REQUESTS, type SessionData, type SessionRequest } from './resources.js';
import { gatewaySession, RequestMoved, type SessionDecider } from './session-decider.js';
import type { SessionEvents } from './session-events.js';
import type { SessionGateway } from './session-gateway.js';

const PAGE = '500';
const LIMITS = { atOnce: 16, most: 5_000, firstMs: 500, lastMs: 15_000 };
/** A server that ends watches at once is not asked all the time. */
const PAUSE_MS = 1_000;

export interface ControllerParts {
  kube: KubeClient;
  decider: SessionDecider;
  gateway: SessionGateway;
  events: SessionEvents;
  /** Of the CSI driver whose sessions the gateways have. */
  driver: string;
  ttlMs: number;
  /** Everything is looked at anew that often. */
  relistMs: number;
  log: Logger;
}

/**
 * The life of SnapshotSessionRequests: pending ones are decided, those that ended are removed with their SnapshotSessionData, and data whose
 * request is gone, too. What is there counts, page by page and every `relistMs`; a watch only says sooner where to look. Nothing of it
 * is kept but what waits to be decided.
 */
export class SessionController {
  constructor(private readonly parts: ControllerParts) {}

  /** Until the signal, with which it also stops what it does. */
  async run(signal: AbortSignal): Promise<void> {
    const backlog = new Backlog<SessionRequest>(
      (request, tries) => this.handle(request, tries, signal),
      LIMITS,
      signal,
    );
    while (!signal.aborted) {
      const began = performance.now();
      try {
        const { version, isWhole } = await this.lookAtAll(backlog, signal);
        // What found no place is looked for again soon.
        if (isWhole) await this.follow(version, backlog, signal);
      } catch (error) {
        if (!signal.aborted) this.parts.log.warn({ err: error }, 'the session requests cannot be seen');
      }
      if (performance.now() - began < PAUSE_MS) await delay(PAUSE_MS, undefined, { signal }).catch(() => {});
    }
  }

  private async follow(resourceVersion: string, backlog: Backlog<SessionRequest>, signal: AbortSignal): Promise<void> {
    const { kube, relistMs } = this.parts;
    const timeoutSeconds = String(Math.ceil(relistMs / 1_000));
    const query = { resourceVersion, allowWatchBookmarks: 'true', timeoutSeconds };
    const over = AbortSignal.any([signal, AbortSignal.timeout(relistMs)]);
    await kube.watch(REQUESTS, query, event => this.hear(event, backlog), over);
  }

  private hear({ type, object }: WatchEvent, backlog: Backlog<SessionRequest>): void {
    if (type === 'BOOKMARK' || type === 'ERROR') return;
    const request = object as SessionRequest;
    if (type !== 'DELETED') return void this.consider(request, backlog);
    backlog.drop(keyOf(request));
    const { sessionToken } = request.status ?? {};
    if (sessionToken) void this.endOf(request).catch(() => {}); // the next look at all finds what is left
  }

  /** False: there was no place. */
  private consider(request: SessionRequest, backlog: Backlog<SessionRequest>): boolean {
    const { metadata, status } = request;
    if (metadata.deletionTimestamp || (status?.sessionState ?? 'Pending') !== 'Pending') return true;
    return backlog.add(keyOf(request), request);
  }

  /** True: nothing is left to do for it. */
  private async handle(request: SessionRequest, tries: number, signal: AbortSignal): Promise<boolean> {
    const { decider, events, log } = this.parts;
    const { namespace, name } = request.metadata;
    try {
      const status = await decider.decide(request, signal);
      log.info({ namespace, name, state: status.sessionState, reason: status.error }, 'a session was decided');
      if (status.error) await events.tell(request, 'Failed', status.error);
      return true;
    } catch (error) {
      if (signal.aborted || error instanceof RequestMoved) return true;
      const why = `waits: ${error instanceof KubeError ? `the API server answers ${error.message}` : (error as Error).message}`;
      log.warn({ namespace, name, tries, err: error }, 'a session could not be decided');
      const isNew = request.status?.error !== why;
      await decider.saysWhy(request, why, signal).catch(() => {});
      if (isNew) await events.tell(request, 'Waiting', why);
      return false;
    }
  }

  private async lookAtAll(backlog: Backlog<SessionRequest>, signal: AbortSignal) {
    const { kube } = this.parts;
    // The data first: what has one was there before it.
    const data: Pick<SessionData, 'metadata' | 'spec'>[] = [];
    for await (const { items } of kube.pages<SessionData>(DATA, {}, { limit: PAGE }, signal))
      for (const { metadata, spec } of items)
        data.push({ metadata: metaOf(metadata), spec: { ...spec, snapshots: [] } });
    const tokens = new Map<string, string | undefined>();
    let version = '';
    let isWhole = true;
    for await (const { items, metadata } of kube.pages<SessionRequest>(REQUESTS, {}, { limit: PAGE }, signal)) {
      version = metadata.resourceVersion;
      for (const request of items) {
        const isOver = this.isOver(request);
        if (!isOver) tokens.set(request.metadata.uid!, request.status?.sessionToken);
        if (isOver) await this.reap(request, signal);
        else isWhole = this.consider(request, backlog) && isWhole;
      }
    }
    for (const { metadata, spec } of data) {
      const { uid } = spec.request;
      const token = tokens.get(uid);
      const isOf = tokens.has(uid) && (token === undefined || token === metadata.name);
      if (isOf && Date.parse(spec.expiryTime) > kube.now()) continue;
      await kube.delete(DATA, { namespace: metadata.namespace, name: metadata.name }, metadata.uid, signal);
      if (spec.driver === this.parts.driver && !tokens.has(uid)) await this.close(uid);
    }
    return { version, isWhole };
  }

  private isOver({ metadata, status }: SessionRequest): boolean {
    const { kube, ttlMs } = this.parts;
    const until = status?.expiryTime ? Date.parse(status.expiryTime) : Date.parse(metadata.creationTimestamp!) + ttlMs;
    return until <= kube.now();
  }

  private async reap(request: SessionRequest, signal: AbortSignal): Promise<void> {
    const { namespace, name, uid } = request.metadata;
    await this.parts.kube.delete(REQUESTS, { namespace, name }, uid, signal);
    this.parts.log.info({ namespace, name }, 'a session request has ended');
  }

  /** Of a request that was deleted while its session was open: its token is worth nothing from now on. */
  private async endOf({ metadata, status }: SessionRequest): Promise<void> {
    const { kube } = this.parts;
    const query = { fieldSelector: `metadata.name=${status!.sessionToken}`, limit: '1' };
    for await (const { items } of kube.pages<SessionData>(DATA, {}, query))
      for (const found of items)
        if (found.spec.request.uid === metadata.uid)
          await kube.delete(
            DATA,
            { namespace: found.metadata.namespace, name: found.metadata.name },
            found.metadata.uid,
          );
    await this.close(metadata.uid!);
  }

  /** It ends there by itself, too, at its time. */
  private async close(uid: string): Promise<void> {
    await this.parts.gateway.close(gatewaySession(uid)).catch(error => {
      this.parts.log.warn({ err: error, uid }, 'a session was not closed at the gateway');
    });
  }
}

const metaOf = ({ name, namespace, uid }: SessionData['metadata']): SessionData['metadata'] => ({
  name,
  ...(namespace ? { namespace } : {}),
  ...(uid ? { uid } : {}),
});
