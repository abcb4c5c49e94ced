import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '#platform/logging/log';
import { isKubeError, type KubeClient, type KubeObject } from './kube-client.js';

interface Lease extends KubeObject {
  spec: {
    holderIdentity?: string;
    leaseDurationSeconds?: number;
    acquireTime?: string;
    renewTime?: string;
    leaseTransitions?: number;
  };
}

const LEASES = { api: 'coordination.k8s.io/v1', plural: 'leases' };

export interface LeaseTimes {
  /** Others wait that long after the last change that they saw. */
  durationMs: number;
  /** Who could not renew for that long leads no more. */
  deadlineMs: number;
  retryMs: number;
}
/** As client-go's. */
const TIMES: LeaseTimes = { durationMs: 15_000, deadlineMs: 10_000, retryMs: 2_000 };

/**
 * One of several processes leads, by a Lease. Whether another one's has ended is judged by how long it has not changed here, so clocks may
 * differ; who cannot renew stops before anybody else may begin.
 */
export class Leadership {
  readonly identity = `${hostname()}_${randomUUID()}`;
  private seen: { version: string | undefined; at: number } | undefined;

  constructor(
    private readonly kube: KubeClient,
    private readonly name: string,
    private readonly log: Logger,
    private readonly times = TIMES,
  ) {}

  /** `work` gets a signal that ends with the leadership, and ends soon after it. Until `stop`. */
  async run(work: (signal: AbortSignal) => Promise<void>, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      if (await this.tryOnce(stop)) await this.lead(work, stop);
      await delay(this.times.retryMs, undefined, { signal: stop }).catch(() => {});
    }
  }

  private async lead(work: (signal: AbortSignal) => Promise<void>, stop: AbortSignal): Promise<void> {
    this.log.info({ lease: this.name, identity: this.identity }, 'this process leads');
    const lost = new AbortController();
    const signal = AbortSignal.any([lost.signal, stop]);
    const working = work(signal).catch(error => {
      if (!signal.aborted) this.log.error({ err: error }, 'what the leader does has ended');
      lost.abort();
    });
    let renewed = performance.now();
    while (!signal.aborted) {
      await delay(this.times.retryMs, undefined, { signal }).catch(() => {});
      const asked = performance.now();
      const left = this.times.deadlineMs - (asked - renewed);
      const late = AbortSignal.timeout(Math.max(0, Math.round(left)));
      if (!signal.aborted && left > 0 && (await this.tryOnce(AbortSignal.any([signal, late])))) renewed = asked;
      else if (performance.now() - renewed >= this.times.deadlineMs) lost.abort();
    }
    if (!stop.aborted) this.log.warn({ lease: this.name }, 'this process leads no more');
    await working;
    if (stop.aborted && !lost.signal.aborted) await this.release();
  }

  /** True: it is ours now. */
  private async tryOnce(signal: AbortSignal): Promise<boolean> {
    const { kube, name, identity, times } = this;
    const path = { namespace: kube.namespace, name };
    const renewTime = new Date(kube.now()).toISOString().replace('Z', '000Z');
    const spec = { holderIdentity: identity, leaseDurationSeconds: Math.ceil(times.durationMs / 1_000), renewTime };
    try {
      const lease = await kube.get<Lease>(LEASES, path, signal).catch(error => {
        if (isKubeError(error, 404)) return undefined;
        throw error;
      });
      if (!lease) {
        const body = {
          apiVersion: LEASES.api,
          kind: 'Lease',
          metadata: path,
          spec: { ...spec, acquireTime: renewTime },
        };
        await kube.create(LEASES, { namespace: kube.namespace }, body, signal);
        return true;
      }
      const isOwn = lease.spec.holderIdentity === identity;
      if (!isOwn && lease.spec.holderIdentity && !this.hasEnded(lease)) return false;
      const taken = isOwn ? {} : { acquireTime: renewTime, leaseTransitions: (lease.spec.leaseTransitions ?? 0) + 1 };
      await kube.replace(LEASES, path, { ...lease, spec: { ...lease.spec, ...spec, ...taken } }, signal);
      return true;
    } catch (error) {
      // Somebody else was faster, or nothing is known: both mean no.
      if (!signal.aborted) this.log.debug({ err: error }, 'the lease was not taken');
      return false;
    }
  }

  private hasEnded({ metadata: { resourceVersion: version }, spec }: Lease): boolean {
    const now = performance.now();
    if (this.seen?.version !== version) this.seen = { version, at: now };
    return now - this.seen!.at > (spec.leaseDurationSeconds ?? 0) * 1_000;
  }

  /** So that the next one need not wait. */
  private async release(): Promise<void> {
    const path = { namespace: this.kube.namespace, name: this.name };
    try {
      const lease = await this.kube.get<Lease>(LEASES, path);
      if (lease.spec.holderIdentity !== this.identity) return;
      await this.kube.replace(LEASES, path, { ...lease, spec: { ...lease.spec, holderIdentity: '' } });
    } catch (error) {
      this.log.debug({ err: error }, 'the lease was not given back');
    }
  }
}
