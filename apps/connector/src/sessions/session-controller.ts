import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '#platform/logging/log';
import { AtOnce } from '../at-once.js';
import { type KubeClient, KubeError, type WatchEvent } from '../kube/kube-client.js';
import { Backlog } from './backlog.js';
import { DATA, keyOf, REQUESTS, type SessionData, type SessionRequest } from './resources.js';
import { gatewaySession, RequestMoved, type SessionDecider } from './session-decider.js';
import type { SessionEvents } from './session-events.js';
import type { SessionGateway } from './session-gateway.js';
import { orNothing, SessionWaits } from './snapshot-handles.js';

/** An object may have a quarter of a MiB, and all of a page is there at once. */
const PAGE = '20';
/** What is removed at a time. */
const AT_ONCE = 16;
/** Small ones are kept as the watch told them while few wait: 4 MiB of text in all. */
const KEPT = 256;
const KEPT_LETTERS = 16 * 1024;
/** Failures of one look that are logged one by one. */
const LOGGED = 10;
const LIMITS = { atOnce: 16, most: 5_000, firstMs: 500, lastMs: 15_000 };
/** Between looks: a server that ends watches at once, or has more than there is place for, is not asked all the time. */
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

/** Where a request is: that it waits is known, and what it says is read when its turn has come. */
interface Waiting {
  namespace: string | undefined;
  name: string;
  /** As the watch told it, for one try: it need not be read. */
  told?: SessionRequest | undefined;
}

/**
 * The life of SnapshotSessionRequests: pending ones are decided, those that ended are removed with their SnapshotSessionData, and data whose
 * request is gone, too. What is there counts, page by page and every `relistMs`; a watch only says sooner where to look. Nothing of it
 * is kept but what waits to be decided.
 */
export class SessionController {
  private readonly removals = new AtOnce(AT_ONCE);

  constructor(private readonly parts: ControllerParts) {}

  /** Until the signal, with which it also stops what it does. */
  async run(signal: AbortSignal): Promise<void> {
    const backlog = new Backlog<Waiting>((waiting, tries) => this.handle(waiting, tries, signal), LIMITS, signal);
    while (!signal.aborted) {
      let looked = 0;
      try {
        const { version, isWhole } = await this.lookAtAll(backlog, signal).finally(() => {
          looked = performance.now();
        });
        // What found no place is looked for again soon.
        if (isWhole) await this.follow(version, backlog, signal);
      } catch (error) {
        if (!signal.aborted) this.parts.log.warn({ err: error }, 'the session requests cannot be seen');
      }
      // Since its end: of a large cluster a look takes longer than the pause.
      if (performance.now() - looked < PAUSE_MS) await delay(PAUSE_MS, undefined, { signal }).catch(() => {});
    }
  }

  private async follow(resourceVersion: string, backlog: Backlog<Waiting>, signal: AbortSignal): Promise<void> {
    const { kube, relistMs } = this.parts;
    const timeoutSeconds = String(Math.ceil(relistMs / 1_000));
    const query = { resourceVersion, allowWatchBookmarks: 'true', timeoutSeconds };
    const over = AbortSignal.any([signal, AbortSignal.timeout(relistMs)]);
    await kube.watch(REQUESTS, query, event => this.hear(event, backlog, signal), over);
  }

  private hear({ type, object }: WatchEvent, backlog: Backlog<Waiting>, signal: AbortSignal): void {
    // What a watch still tells after its end is the next leader's.
    if (type === 'BOOKMARK' || type === 'ERROR' || signal.aborted) return;
    const request = object as SessionRequest;
    if (type !== 'DELETED') {
      const isKept = backlog.size < KEPT && JSON.stringify(request).length <= KEPT_LETTERS;
      return void this.consider(request, backlog, isKept ? request : undefined);
    }
    backlog.drop(keyOf(request));
    const { uid } = request.metadata;
    const { sessionToken: token } = request.status ?? {};
    // Of one that is over the session has ended by itself, and its data goes with the next look.
    if (!token || this.isOver(request)) return;
    void this.removals.run(() => this.endOf(uid!, token, signal)).catch(() => {}); // the next look at all finds what is left
  }

  /** False: there was no place. */
  private consider(request: SessionRequest, backlog: Backlog<Waiting>, told?: SessionRequest): boolean {
    const { namespace, name } = request.metadata;
    return !isPending(request) || backlog.add(keyOf(request), { namespace, name, ...(told && { told }) });
  }

  /** True: nothing is left to do for it. */
  private async handle(waiting: Waiting, tries: number, signal: AbortSignal): Promise<boolean> {
    const { kube, decider, events, log } = this.parts;
    const { namespace, name, told } = waiting;
    // By the next try it may be another.
    waiting.told = undefined;
    let request = told;
    try {
      request ??= await orNothing(kube.get<SessionRequest>(REQUESTS, { namespace, name }, signal));
      if (!request || !isPending(request)) return true;
      const status = await decider.decide(request, signal);
      log.info({ namespace, name, state: status.sessionState, reason: status.error }, 'a session was decided');
      if (status.error) await events.tell(request, 'Failed', status.error, signal);
      return true;
    } catch (error) {
      if (signal.aborted) return true;
      // What the watch told was not the newest: it is read.
      if (error instanceof RequestMoved) return told === undefined;
      log.warn({ namespace, name, tries, err: error }, 'a session could not be decided');
      if (request) await this.sayWhy(request, error, signal);
      return false;
    }
  }

  private async sayWhy(request: SessionRequest, error: unknown, signal: AbortSignal): Promise<void> {
    const { decider, events } = this.parts;
    const why = `waits: ${wordsOf(error)}`;
    await decider.saysWhy(request, why, signal).catch(() => {});
    if (request.status?.error !== why) await events.tell(request, 'Waiting', why, signal);
  }

  private async lookAtAll(backlog: Backlog<Waiting>, signal: AbortSignal) {
    const { kube } = this.parts;
    // The data first: what has one was there before it.
    const data: Pick<SessionData, 'metadata' | 'spec'>[] = [];
    for await (const { items } of kube.pages<SessionData>(DATA, {}, { limit: PAGE }, signal))
      for (const { metadata, spec } of items)
        data.push({ metadata: metaOf(metadata), spec: { ...spec, snapshots: [] } });
    const tokens = new Map<string, string | undefined>();
    const tidying = this.tidying(signal);
    let version = '';
    let isWhole = true;
    for await (const { items, metadata } of kube.pages<SessionRequest>(REQUESTS, {}, { limit: PAGE }, signal)) {
      version = metadata.resourceVersion;
      const over = items.filter(request => this.isOver(request));
      for (const request of items.filter(each => !over.includes(each))) {
        tokens.set(request.metadata.uid!, request.status?.sessionToken);
        isWhole = this.consider(request, backlog) && isWhole;
      }
      await tidying.each(over, request => this.reap(request, signal));
    }
    const isLeft = ({ metadata, spec }: (typeof data)[number]): boolean => {
      const token = tokens.get(spec.request.uid);
      const isOf = tokens.has(spec.request.uid) && (token === undefined || token === metadata.name);
      return !isOf || Date.parse(spec.expiryTime) <= kube.now();
    };
    await tidying.each(data.filter(isLeft), async ({ metadata, spec }) => {
      const { uid } = spec.request;
      await kube.delete(DATA, { namespace: metadata.namespace, name: metadata.name }, metadata.uid, signal);
      if (spec.driver === this.parts.driver && !tokens.has(uid)) await this.close(uid, signal);
    });
    tidying.end();
    return { version, isWhole };
  }

  /** Some at a time; one that cannot be removed holds up no other, and the next look finds it again. */
  private tidying(signal: AbortSignal) {
    const { log } = this.parts;
    let failed = 0;
    const failedWith = (error: unknown): void => {
      if (signal.aborted) throw error;
      if (++failed <= LOGGED) log.warn({ err: error }, 'what is over could not be removed');
    };
    return {
      each: <T>(items: readonly T[], remove: (item: T) => Promise<void>) =>
        Promise.all(items.map(item => this.removals.run(() => remove(item)).catch(failedWith))),
      end: () => {
        if (failed > LOGGED) log.warn({ failed }, 'so many objects that are over could not be removed');
      },
    };
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
  private async endOf(uid: string, token: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { kube } = this.parts;
    const query = { fieldSelector: `metadata.name=${token}`, limit: '1' };
    for await (const { items } of kube.pages<SessionData>(DATA, {}, query, signal))
      for (const { metadata, spec } of items)
        if (spec.request.uid === uid)
          await kube.delete(DATA, { namespace: metadata.namespace, name: metadata.name }, metadata.uid, signal);
    await this.close(uid, signal);
  }

  /** It ends there by itself, too, at its time. */
  private async close(uid: string, signal: AbortSignal): Promise<void> {
    await this.parts.gateway.close(gatewaySession(uid), signal).catch(error => {
      if (!signal.aborted) this.parts.log.warn({ err: error, uid }, 'a session was not closed at the gateway');
    });
  }
}

/** For readers, who are not to see addresses, and the same at each try: another word is another write and another event. */
function wordsOf(error: unknown): string {
  if (error instanceof SessionWaits) return error.message;
  if (error instanceof KubeError) return `the API server answers ${error.message}`;
  return 'the log of the connector says for what';
}

const isPending = ({ metadata, status }: SessionRequest): boolean =>
  !metadata.deletionTimestamp && (status?.sessionState ?? 'Pending') === 'Pending';

const metaOf = ({ name, namespace, uid }: SessionData['metadata']): SessionData['metadata'] => ({
  name,
  ...(namespace ? { namespace } : {}),
  ...(uid ? { uid } : {}),
});
