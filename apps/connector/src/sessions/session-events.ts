import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Logger } from '#platform/logging/log';
import type { KubeClient } from '../kube/kube-client.js';
import type { SessionRequest } from './resources.js';

const EVENTS = { api: 'events.k8s.io/v1', plural: 'events' };
/** Of the 253 of a name; the rest makes it another one each time. */
const MAX_PREFIX = 230;
const MAX_NOTE = 1_000;

/** For readers of `kubectl describe`: why a request is not Ready. Of one that is, its status says everything. */
export class SessionEvents {
  constructor(
    private readonly kube: KubeClient,
    private readonly log: Logger,
  ) {}

  async tell(
    { apiVersion, kind, metadata }: SessionRequest,
    reason: 'Failed' | 'Waiting',
    note: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { name, namespace, uid } = metadata;
    const prefix = name.slice(0, MAX_PREFIX).replace(/[-.]+$/, '');
    const body = {
      apiVersion: EVENTS.api,
      kind: 'Event',
      // Not `generateName`: of events an API server takes none that ends with a dot.
      metadata: { name: `${prefix}.${randomBytes(8).toString('hex')}`, namespace },
      eventTime: new Date(this.kube.now()).toISOString().replace('Z', '000Z'),
      reportingController: 'trivet.dev/session-manager',
      reportingInstance: hostname(),
      action: 'Decide',
      reason,
      regarding: { apiVersion, kind, name, namespace, uid },
      note: note.slice(0, MAX_NOTE),
      type: 'Warning',
    };
    await this.kube.create(EVENTS, { namespace }, body, signal).catch(error => {
      if (!signal.aborted) this.log.warn({ err: error }, 'an event was not written');
    });
  }
}
