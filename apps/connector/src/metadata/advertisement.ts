import { isDeepStrictEqual } from 'node:util';
import type { Logger } from '#platform/logging/log';
import { type Bundle, bundleOf } from '../kube/ca-bundle.js';
import type { DoorKeys } from '../kube/door-keys.js';
import { isKubeError, type KubeClient, type KubeObject, type ResourcePath } from '../kube/kube-client.js';
import { CONFIGURATIONS, DRIVER_LABEL } from '../sessions/resources.js';
import { orNothing } from '../sessions/snapshot-handles.js';

export const METADATA_SERVICES: ResourcePath = {
  api: 'cbt.storage.k8s.io/v1beta1',
  plural: 'snapshotmetadataservices',
};
/** Until when each authority that is ours no more is among those that readers are told to trust. */
export const RETIRING_ANNOTATION = 'cbt.trivet.dev/retiring-ca';
/** Who keeps a SnapshotMetadataService. One of somebody else is left alone. */
export const KEEPER_LABEL = 'app.kubernetes.io/managed-by';
export const KEEPER = 'trivet-connector';

/** Where readers find the door, in one of the two forms. */
interface Form {
  kind: string;
  resource: ResourcePath;
  labels: Record<string, string>;
  /** Beside the authority. */
  spec: Record<string, unknown>;
  /** An object of that name that somebody else keeps is theirs. */
  isKept?: boolean;
}

interface Advertised extends KubeObject {
  spec: Record<string, unknown> & { caCert?: string };
}

export interface AdvertisementParts {
  kube: KubeClient;
  keys: DoorKeys;
  /** The CSI driver. */
  driver: string;
  /** host:port of the door. */
  address: string;
  /** Of Kubernetes' tokens; undefined: the door takes none. */
  audience?: string | undefined;
  /** How long somebody may go by what they once read. */
  overlapMs: number;
  log: Logger;
}

/**
 * Keeps what the cluster is told about the door: the SnapshotServiceConfiguration of the KEP's first text, and the SnapshotMetadataService that the
 * community ships. Each round makes what is not there and puts right what is different. A form that the cluster does not know is left out.
 */
export class Advertisement {
  private readonly forms: readonly Form[];
  private rounds = Promise.resolve(true);
  /** What was said last, of each form: it is said once. */
  private readonly said = new Map<string, string>();

  constructor(private readonly parts: AdvertisementParts) {
    const { kube, driver, address, audience } = parts;
    const configuration: Form = {
      kind: 'SnapshotServiceConfiguration',
      resource: CONFIGURATIONS,
      labels: { [DRIVER_LABEL]: driver },
      spec: { address, namespace: kube.namespace },
    };
    const service: Form = {
      kind: 'SnapshotMetadataService',
      resource: METADATA_SERVICES,
      labels: { [KEEPER_LABEL]: KEEPER },
      // Trivet knows what changed since a base that was deleted. A definition without that field prunes it, and a write then changes nothing.
      spec: { address, audience, requireBaseSnapshotForDelta: false },
      isKept: true,
    };
    this.forms = audience === undefined ? [configuration] : [configuration, service];
  }

  /** One after the other. Gives whether all that there is to say was said. */
  round(): Promise<boolean> {
    this.rounds = this.rounds.then(() => this.once());
    return this.rounds;
  }

  private async once(): Promise<boolean> {
    const { kube, keys } = this.parts;
    const own = keys.ca;
    // Until all readers are told of it nobody is to meet another certificate.
    const told = await Promise.all(this.forms.map(form => this.publish(form, own)));
    const isTold = told.every(each => each);
    keys.look(kube.now(), isTold ? own : undefined);
    return isTold;
  }

  private async publish(form: Form, own: string): Promise<boolean> {
    const { kind } = form;
    try {
      this.say(kind, await this.bring(form, own));
      return true;
    } catch (error) {
      this.say(kind, `not published: ${(error as Error).message}`, error);
      return false;
    }
  }

  /** Gives what came of it. */
  private async bring({ kind, resource, labels, spec, isKept }: Form, own: string): Promise<string> {
    const { kube, driver, overlapMs } = this.parts;
    const name = driver.toLowerCase();
    const found = await orNothing(kube.get<Advertised>(resource, { name }));
    if (!found) {
      const metadata = { name, labels };
      const body = { apiVersion: resource.api, kind, metadata, spec: { ...spec, caCert: base64(own) } };
      return kube.create(resource, {}, body).then(
        () => 'published',
        error => {
          if (isKubeError(error, 404)) return 'not published: this cluster does not know its kind';
          throw error;
        },
      );
    }
    const { metadata } = found;
    if (isKept && metadata.labels?.[KEEPER_LABEL] !== KEEPER)
      return `not published: there is one that somebody else keeps; label it ${KEEPER_LABEL}=${KEEPER} to have it kept by this connector`;
    const bundle = bundleOf(own, publishedIn(found), kube.now(), overlapMs);
    const next = {
      ...found,
      metadata: withNotes(metadata, labels, bundle),
      spec: { ...spec, caCert: base64(bundle.pem) },
    };
    if (!isDeepStrictEqual(next, found)) await kube.replace(resource, { name }, next);
    return 'published';
  }

  private say(kind: string, what: string, error?: unknown): void {
    if (this.said.get(kind) === what) return;
    this.said.set(kind, what);
    const { log, driver } = this.parts;
    if (what === 'published') log.info({ kind, driver }, 'readers in the cluster are told of the door');
    else log.warn({ kind, driver, why: what, err: error }, 'readers in the cluster are not told of the door');
  }
}

const base64 = (pem: string): string => Buffer.from(pem).toString('base64');

function publishedIn({ metadata, spec }: Advertised): Partial<Bundle> {
  const retiring = metadata.annotations?.[RETIRING_ANNOTATION];
  return { pem: Buffer.from(spec.caCert ?? '', 'base64').toString(), ...(retiring ? { retiring } : {}) };
}

function withNotes(
  metadata: KubeObject['metadata'],
  labels: Record<string, string>,
  { retiring }: Bundle,
): KubeObject['metadata'] {
  const { [RETIRING_ANNOTATION]: _, ...annotations } = metadata.annotations ?? {};
  if (retiring) annotations[RETIRING_ANNOTATION] = retiring;
  const { annotations: __, ...rest } = metadata;
  const noted = Object.keys(annotations).length > 0 ? { annotations } : {};
  return { ...rest, ...noted, labels: { ...metadata.labels, ...labels } };
}
