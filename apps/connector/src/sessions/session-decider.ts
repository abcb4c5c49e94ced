import { randomBytes } from 'node:crypto';
import { isKubeError, type KubeClient } from '../kube/kube-client.js';
import type { AccessReviews } from './access-reviews.js';
import type { Configurations } from './configurations.js';
import { type CreatorRecords, KEY_SPREADS_MS } from './creator-record.js';
import {
  DATA,
  type DataSnapshot,
  REQUESTS,
  type SessionData,
  type SessionRequest,
  type SessionStatus,
} from './resources.js';
import type { SessionGateway } from './session-gateway.js';
import { findSnapshots, SessionFailed, SessionWaits } from './snapshot-handles.js';

const LETTERS = 'abcdefghijklmnopqrstuvwxyz234567';
const MAX_ERROR = 1_000;

/** It is gone, or somebody has changed it: a watch or the next look at all brings it again. */
export class RequestMoved extends Error {}

/** Of the session at the gateways. */
export const gatewaySession = (uid: string): string => `k8s-${uid}`;

export interface DeciderParts {
  kube: KubeClient;
  access: AccessReviews;
  records: () => CreatorRecords;
  configurations: Configurations;
  gateway: SessionGateway;
  /** Whose sessions the gateways know; others have random tokens of ours. */
  driver: string;
  /** By which its snapshots are read. */
  endpoint: string;
  ttlMs: number;
}

/** Makes a pending request Ready or Failed. What it did before it died is found again: the gateway answers the same session. */
export class SessionDecider {
  constructor(private readonly parts: DeciderParts) {}

  /** Rejects when it cannot be decided now. */
  async decide(request: SessionRequest, signal: AbortSignal): Promise<SessionStatus> {
    const { kube, ttlMs } = this.parts;
    let status: SessionStatus;
    try {
      status = await this.ready(request, signal);
    } catch (error) {
      if (!(error instanceof SessionFailed)) throw error;
      const expiryTime = new Date(kube.now() + ttlMs).toISOString();
      status = { sessionState: 'Failed', error: error.message.slice(0, MAX_ERROR), expiryTime };
    }
    return this.write(request, status, signal);
  }

  /** What a pending one waits for, for its reader. */
  async saysWhy(request: SessionRequest, why: string, signal: AbortSignal): Promise<void> {
    const error = why.slice(0, MAX_ERROR);
    if (request.status?.error !== error) await this.write(request, { sessionState: 'Pending', error }, signal);
  }

  private async ready(request: SessionRequest, signal: AbortSignal): Promise<SessionStatus> {
    const { kube, access, records, configurations } = this.parts;
    const { namespace = '', uid = '', name, creationTimestamp } = request.metadata;
    const names = request.spec.snapshots;
    const creator = records().read(request);
    if (!creator && records().isOfUnknownKey(request) && kube.now() - Date.parse(creationTimestamp!) < KEY_SPREADS_MS)
      throw new SessionWaits('its creator was written down with a certificate that the connector has not heard of yet');
    if (!creator)
      throw new SessionFailed('nobody vouches for who created this: it has not passed the webhook. Create it again');
    const [denied] = await access.denied(creator, namespace, names, signal);
    if (denied !== undefined) throw new SessionFailed(`${creator.username} may not read VolumeSnapshot ${denied}`);
    const { driver, snapshots } = await findSnapshots(kube, namespace, names, signal);
    const configuration = await configurations.of(driver, signal);
    if (!configuration)
      throw new SessionFailed(
        `CSI driver ${driver} has no SnapshotServiceConfiguration: it does not serve SnapshotMetadata`,
      );
    const { token, expiryTime } = await this.open(driver, uid, snapshots, signal);
    const spec: SessionData['spec'] = { driver, expiryTime, request: { namespace, name, uid }, snapshots };
    const {
      spec: { address, caCert, namespace: ofDriver },
    } = configuration;
    await this.store(ofDriver, token, spec, signal);
    return { sessionState: 'Ready', sessionToken: token, sessionURL: address, caCert, expiryTime };
  }

  private async open(driver: string, uid: string, snapshots: readonly DataSnapshot[], signal: AbortSignal) {
    const { kube, gateway, endpoint, ttlMs } = this.parts;
    const until = (ms: number): string => new Date(kube.now() + ms).toISOString();
    if (driver !== this.parts.driver) {
      const token = Array.from(randomBytes(52), byte => LETTERS[byte & 31]).join('');
      return { token, expiryTime: until(ttlMs) };
    }
    const handles = snapshots.map(({ snapshotHandle }) => snapshotHandle);
    const asked = { name: gatewaySession(uid), endpoint, snapshots: handles, ttlSeconds: Math.ceil(ttlMs / 1_000) };
    const { token, error, driver: served, remainingSeconds } = await gateway.open(asked, signal);
    if (!token) throw new SessionFailed(error || 'the gateway has a session of this name that is another cluster’s');
    if (served !== driver)
      throw new SessionFailed(`the snapshots are of CSI driver ${served} at the gateway, not of ${driver}`);
    return { token, expiryTime: until(remainingSeconds * 1_000) };
  }

  /** Before anybody is told of it. One that is there already is of this request: nobody else has its name. */
  private async store(namespace: string, name: string, spec: SessionData['spec'], signal: AbortSignal): Promise<void> {
    const body = { apiVersion: DATA.api, kind: 'SnapshotSessionData', metadata: { name, namespace }, spec };
    await this.parts.kube.create(DATA, { namespace }, body, signal).catch(error => {
      if (!isKubeError(error, 409)) throw error;
    });
  }

  private async write(request: SessionRequest, status: SessionStatus, signal: AbortSignal): Promise<SessionStatus> {
    const { namespace, name } = request.metadata;
    const path = { namespace, name, subresource: 'status' } as const;
    await this.parts.kube.replace(REQUESTS, path, { ...request, status }, signal).catch(error => {
      throw isKubeError(error, 404) || isKubeError(error, 409) ? new RequestMoved() : error;
    });
    return status;
  }
}
